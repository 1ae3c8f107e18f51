/** A report in words: what got worse, what became of each vote, which button is the obvious one. Pure functions. */
import type { Attribution, Change, Expectation, Measure, Prediction, Recipe, Report, WordEffect } from "./types";
import { count, percent, plainName } from "./words";

export type Verdict = "better" | "worse" | "same";

export const VERDICTS: Record<Verdict, { sign: string; text: string; tone: string }> = {
  better: { sign: "▲", text: "better", tone: "good" },
  worse: { sign: "▼", text: "worse", tone: "bad" },
  same: { sign: "=", text: "no clear change", tone: "" },
};

/** Whether the whole interval of the change lies on one side of nothing. */
export function verdictOf({ low = null, high = null, better }: Measure): Verdict {
  if (low === null || high === null || (low <= 0 && high >= 0)) return "same";
  return low > 0 === (better === "higher") ? "better" : "worse";
}

export const changeOf = ({ before, after }: Measure): number | null => (before === null ? null : after - before);

// -- numbers, each in its own unit

const names = new Map([
  ["accuracy", "accuracy"],
  ["macro_f1", "macro-F1"],
  ["calibration_error", "calibration error"],
  ["f1", "F1"],
  ["gap", "gap in accuracy"],
]);
export const measureName = (name: string): string => names.get(name) ?? plainName(name);

/** Shares are written as percentages; whatever else is measured, as the number it is. */
const isShare = ({ before, after }: Pick<Measure, "before" | "after">): boolean => [before ?? 0, after].every((value) => value >= 0 && value <= 1);

const figures = (value: number): string => (Math.abs(value) >= 1000 ? count(Math.round(value)) : String(Number(value.toPrecision(3))));
const minus = (text: string): string => text.replace("-", "−");

export function valueText(measure: Measure, value: number | null): string {
  if (value === null) return "–";
  return isShare(measure) ? percent(value, 1) : minus(figures(value));
}

/** A difference with its sign: in points for shares. */
export function stepText(measure: Measure, step: number): string {
  const text = isShare(measure) ? (step * 100).toFixed(1) : figures(step);
  return Number(text) === 0 ? "0" : (step > 0 ? "+" : "") + minus(text);
}

export function changeText(measure: Measure): string {
  const change = changeOf(measure);
  if (change === null) return "–";
  return stepText(measure, change) + (isShare(measure) ? " points" : "");
}

export function intervalText(measure: Measure): string {
  const { low = null, high = null } = measure;
  return low === null || high === null ? "" : `${stepText(measure, low)} to ${stepText(measure, high)}`;
}

export function chanceText(p: number | null | undefined): string {
  if (p === null || p === undefined) return "–";
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}

// -- what got worse

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** What a measure is of: "accuracy on films, label hate". */
function called({ name, data, slice }: Measure): string {
  if (name === "gap") return `the gap in accuracy between ${slice} on ${data}`;
  return `${measureName(name)} on ${data}${slice ? `, ${slice},` : ""}`;
}

/** "Accuracy on films fell from 91.2 % to 88.0 %: −3.2 points (95 % interval −5.1 to −1.4)." */
export function worseSentence(measure: Measure): string {
  const moved = (changeOf(measure) ?? 0) < 0 ? "fell" : "rose";
  const from = `${valueText(measure, measure.before)} to ${valueText(measure, measure.after)}`;
  return `${capital(called(measure))} ${moved} from ${from}: ${changeText(measure)} (95 % interval ${intervalText(measure)}).`;
}

/** Whether a set was made from the votes: the texts of another without, with, or with other words. */
export const isMade = (data: string): boolean => data.includes(" · ");

/** What fell beyond its interval: whole sets before parts of them, sets made from votes last, the largest fall first. */
export function worseOf(measures: readonly Measure[]): Measure[] {
  const order = ({ data, slice }: Measure): number => (isMade(data) ? 2 : slice ? 1 : 0);
  const fall = (measure: Measure): number => Math.abs(changeOf(measure) ?? 0);
  return measures.filter((measure) => verdictOf(measure) === "worse").sort((one, other) => order(one) - order(other) || fall(other) - fall(one));
}

export const broken = (expectations: readonly Expectation[]): Expectation[] => expectations.filter((one) => !one.holds);

/** Whether keeping the current model is the button to press without thinking: a fall or a broken expectation, or nothing to go by. */
export function keepFirst(report: Report, current: boolean): boolean {
  return !current || worseOf(report.measures).length > 0 || broken(report.expectations).length > 0;
}

// -- the table of measures

export interface SetRows {
  data: string;
  whole: Measure[];
  slices: { slice: string; rows: Measure[] }[];
  worse: number; // of the rows in slices
}

/** Rows by set, in the order of the report: those over the whole set, then its parts. */
export function rowsOf(measures: readonly Measure[]): SetRows[] {
  const sets = new Map<string, Measure[]>();
  for (const one of measures) sets.set(one.data, [...(sets.get(one.data) ?? []), one]);
  return [...sets].map(([data, rows]) => {
    const slices = new Map<string, Measure[]>();
    for (const one of rows) if (one.slice) slices.set(one.slice, [...(slices.get(one.slice) ?? []), one]);
    const parts = [...slices].map(([slice, own]) => ({ slice, rows: own }));
    return { data, whole: rows.filter((one) => !one.slice), slices: parts, worse: rows.filter((one) => one.slice && verdictOf(one) === "worse").length };
  });
}

const LEAST_REACH = 0.02;

/** How far intervals are drawn to either side: one scale for the table, by the whole sets; parts may be cut off. */
export function reachOf(measures: readonly Measure[]): number {
  const whole = measures.filter((one) => !one.slice);
  const ends = (whole.length ? whole : measures).filter(isShare).flatMap(({ low, high }) => [Math.abs(low ?? 0), Math.abs(high ?? 0)]);
  return Math.max(LEAST_REACH, ...ends) * 1.1;
}

// -- items

export const labelOf = ({ labels, probabilities }: Prediction): string => labels[probabilities.indexOf(Math.max(...probabilities))] ?? "";
export const confidenceOf = ({ probabilities }: Prediction): number => Math.max(...probabilities);

/** One colour scale for all that is shown: the 99th percentile of the sizes of all scores. */
export function scaleOf(shown: readonly (Attribution | null)[]): number {
  const sizes = shown.flatMap((one) => one?.scores ?? []).map(Math.abs).sort((one, other) => one - other);
  return sizes[Math.min(sizes.length - 1, Math.floor(sizes.length * 0.99))] ?? 0;
}

export const explanationsOf = (changes: readonly Change[]): (Attribution | null)[] => changes.flatMap((one) => [one.why_before ?? null, one.why_after ?? null]);

/** The words that weigh most, for those who do not see the colours. */
export function strongest(attribution: Attribution, most = 5): { word: string; score: number }[] {
  const unread = new Set(attribution.unread ?? []);
  const all = attribution.words.map((word, at) => ({ word, at, score: attribution.scores[at] ?? 0 })).filter(({ at, score }) => !unread.has(at) && score !== 0);
  return all.sort((one, other) => Math.abs(other.score) - Math.abs(one.score)).slice(0, most);
}

// -- votes

/** Whether a word moved the way the vote asked for. */
export const heard = ({ vote, before, after }: WordEffect): boolean => (vote === "lower" ? after < 0.9 * before : after > 1.1 * before);

// -- recipes and rivals

const FIRST = ["strength", "epochs", "learning_rate"];

/** "word dropout · strength 0.3 · seed 1": the options that say most, or those of the given names. */
export function recipeText(recipe: Recipe, names: ReadonlySet<string> | null = null): string {
  const place = (name: string): number => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  const options = recipe.options.filter(([name, value]) => value !== null && value !== "" && (names === null || names.has(name)));
  const first = [...options].sort(([one], [other]) => place(one) - place(other)).slice(0, 4);
  const told = first.map(([name, value]) => (value === true ? plainName(name) : value === false ? `no ${plainName(name)}` : `${plainName(name)} ${String(value)}`));
  return [plainName(recipe.name), ...told, ...(typeof recipe.seed === "number" && names === null ? [`seed ${recipe.seed}`] : [])].join(" · ");
}

/** The options in which recipes differ, where several of them have the option at all. */
export function differing(recipes: readonly Recipe[]): Set<string> {
  const values = new Map<string, Set<unknown>>();
  for (const [name, value] of recipes.flatMap((one) => one.options)) values.set(name, (values.get(name) ?? new Set()).add(value));
  return new Set([...values].filter(([, all]) => all.size > 1).map(([name]) => name));
}

export const strengthOf = (recipe: Recipe | null): number | null => {
  const value = recipe?.options.find(([name]) => name === "strength")?.[1];
  return typeof value === "number" ? value : null;
};

export interface Contender {
  recipe: Recipe | null;
  own: boolean; // the fix that the report is about
  note: string;
  measures: readonly Measure[];
}

/** The fix and those measured beside it. */
export const contenders = (report: Report): Contender[] => [
  { recipe: report.recipe ?? null, own: true, note: "", measures: report.measures.filter((one) => !one.slice) },
  ...report.rivals.map(({ recipe, note, measures }) => ({ recipe, own: false, note, measures: measures.filter((one) => !one.slice) })),
];

const TOLD = / (rose|fell) by [\d.]+ points|^Nothing that was measured|^No example changed|measures? (of parts of sets )?got (better|worse)|^[\d,]+ examples? that (was|were) right/;

/** What must be known besides what the screen says itself. */
export const caveats = (report: Report): string[] => report.notes.filter((note) => !TOLD.test(note) && !report.rivals.some((rival) => rival.note === note));

/** The same fix at several strengths, weakest first; empty without at least two. */
export function sweepOf(report: Report): { strength: number; own: boolean; measures: readonly Measure[] }[] {
  const same = contenders(report).filter(({ recipe }) => recipe !== null && recipe.name === report.recipe?.name);
  const points = same.flatMap(({ recipe, own, measures }) => {
    const strength = strengthOf(recipe);
    return strength === null ? [] : [{ strength, own, measures }];
  });
  const one = new Map(points.reverse().map((point) => [point.strength, point])); // the fix itself goes before a rival of its strength
  return one.size < 2 ? [] : [...one.values()].sort((a, b) => a.strength - b.strength);
}
