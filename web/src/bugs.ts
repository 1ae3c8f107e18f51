/** From an audit, a lab and verdicts to what is shown and asked: order, drawn evidence, the matrix, curves, distributions. */
import type { LocationQuery, LocationQueryRaw } from "vue-router";

import { plain, type Figure, type Ink } from "./figures";
import type { Bit } from "./flips";
import { shown } from "./heat";
import type { Item } from "./outbox";
import type { Attribution, AuditRow, CheckRun, Evidence, Example, Finding, Lab, LayerCurve, Opinion, PlantedBug, Sighting, Verdict } from "./types";
import { count, percent, plainName, plural } from "./words";

// -- what the address says

export const TABS = ["audit", "lab", "verdicts"] as const;
export type Tab = (typeof TABS)[number];

export interface BugLook {
  show: Tab;
  audit: string | null; // id; null: the latest of the revision in use
  against: string | null; // id of an earlier audit to compare with
  revision: string | null; // that the lab or a verdict is about; null: the one in use
  measure: Measure;
  bug: string | null; // the cell of the matrix that is open
  method: string | null; // of that cell; of a verdict: the explanation that is shown
}

const first = (query: LocationQuery, name: string): string | null => {
  const value = query[name];
  return ((Array.isArray(value) ? value[0] : value) ?? "").slice(0, 200) || null;
};

export function bugLookOf(query: LocationQuery): BugLook {
  return {
    show: TABS.find((one) => one === first(query, "show")) ?? "audit",
    audit: first(query, "audit"),
    against: first(query, "against"),
    revision: first(query, "revision"),
    measure: MEASURES.find((one) => one === first(query, "measure")) ?? "detection",
    bug: first(query, "bug"),
    method: first(query, "method"),
  };
}

export function bugQueryOf(look: BugLook): LocationQueryRaw {
  const query: LocationQueryRaw = {};
  if (look.show !== "audit") query.show = look.show;
  if (look.audit) query.audit = look.audit;
  if (look.against) query.against = look.against;
  if (look.revision) query.revision = look.revision;
  if (look.measure !== "detection") query.measure = look.measure;
  if (look.bug) query.bug = look.bug;
  if (look.method) query.method = look.method;
  return query;
}

// -- findings

export type Severity = Finding["severity"];
export const SEVERITIES: readonly Severity[] = ["high", "medium", "low"];

/** Said by word and by sign; the colour only repeats it. */
export const severities: Record<Severity, { sign: string; text: string; tone: string }> = {
  high: { sign: "‼", text: "high severity", tone: "bad" },
  medium: { sign: "!", text: "medium severity", tone: "warn" },
  low: { sign: "○", text: "low severity", tone: "" },
};

/** The severest first; among equals as the audit has them. */
export const inOrder = <T extends Pick<Finding, "severity">>(findings: readonly T[]): T[] =>
  findings.map((one, n) => ({ one, n })).sort((a, b) => SEVERITIES.indexOf(a.one.severity) - SEVERITIES.indexOf(b.one.severity) || a.n - b.n).map(({ one }) => one);

/** "2 of high, 1 of low severity". */
export function countsText(row: Pick<AuditRow, Severity>): string {
  const told = SEVERITIES.flatMap((severity) => (row[severity] ? [`${count(row[severity])} of ${severity}`] : []));
  return told.length ? `${told.join(", ")} severity` : "";
}

export const findingsOf = (row: Pick<AuditRow, Severity>): number => row.high + row.medium + row.low;

/** What an audit comes to, in a sentence or two. */
export function summaryOf(row: Pick<AuditRow, Severity>, checks: readonly Pick<CheckRun, "state">[]): string {
  const waiting = checks.filter((one) => one.state === "waiting").length;
  const left = checks.filter((one) => one.state === "left out").length;
  const so = waiting ? " so far" : "";
  const all = findingsOf(row);
  const found = all ? `${plural(all, "finding")}${so}: ${countsText(row)}.` : `Nothing was found${so}.`;
  const rest = [waiting ? `${plural(waiting, "check")} ${waiting === 1 ? "has" : "have"} not run yet.` : "", left ? `${plural(left, "check")} left out.` : ""];
  return [found, ...rest].filter(Boolean).join(" ");
}

/** How a finding that is still there has moved. */
export function movedText(now: Severity, before: Severity): string {
  const by = SEVERITIES.indexOf(before) - SEVERITIES.indexOf(now);
  return by === 0 ? "" : by > 0 ? `worse: was of ${before} severity` : `better: was of ${before} severity`;
}

/** Words of each screen that can be gone on to, and what to open there. */
export function screenOf(finding: Pick<Finding, "screen" | "words">, project: string, place: number | null): { text: string; to: object; manager: boolean } | null {
  const params = { project };
  const at = place === null ? params : { project, place };
  const word = finding.words[0];
  switch (finding.screen) {
    case "examples": return { text: "Go to Examples", to: { name: "examples", params: at, query: { correct: "any", ...(word && place === null ? { contains: word } : {}) } }, manager: false };
    case "words": return { text: "Go to Words", to: { name: "words", params, query: word ? { word } : {} }, manager: false };
    case "flips": return { text: "Go to Flips", to: { name: "flips", params: at }, manager: false };
    case "neighbours": return { text: "Go to Neighbours", to: { name: "neighbours", params }, manager: false };
    case "label-errors": return { text: "Go to Label errors", to: { name: "label-errors", params }, manager: false };
    case "problems": return { text: "Go to Data problems", to: { name: "problems", params }, manager: false };
    case "fix": return { text: "Go to Fix", to: { name: "fix", params }, manager: true };
    case "bugs": return { text: "See which explanation sees which bug", to: { name: "bugs", params, query: { show: "lab" } }, manager: false };
    default: return null;
  }
}

// -- evidence, drawn

/** Two or three figures, as far as they mean something; shares stay shares, since `what` names the unit. */
export function numberText(value: number): string {
  const size = Math.abs(value);
  const text = size >= 1000 ? count(Math.round(size)) : size >= 100 ? String(Math.round(size)) : size >= 10 ? size.toFixed(1) : size.toFixed(2);
  return Number(text.replaceAll(",", "")) === 0 ? "0" : (value < 0 ? "−" : "") + text.replace(/^(\d+)\.0+$/, "$1");
}

export interface DrawnEvidence {
  zero: number; // all in percent of the width
  value: number;
  low: number | null;
  high: number | null;
  usual: number | null;
}

/** Where the numbers lie on a line that begins at nothing; shares are drawn on one from 0 to 1. */
export function drawEvidence({ value, usual = null, low = null, high = null }: Evidence): DrawnEvidence {
  const known = [value, usual, low, high].filter((one): one is number => one !== null);
  const [least, most] = [Math.min(0, ...known), Math.max(0, ...known)];
  const share = most <= 1 && least >= -1;
  const [from, to] = share ? [least < 0 ? -1 : 0, least < 0 && most <= 0 ? 0 : 1] : [least, most];
  const width = to - from || 1;
  const at = (one: number | null): number | null => (one === null ? null : Math.round((10_000 * (one - from)) / width) / 100);
  return { zero: at(0)!, value: at(value)!, low: at(low), high: at(high), usual: at(usual) };
}

export function evidenceText({ value, usual = null, low = null, high = null, n = 0 }: Evidence): string {
  const told = [numberText(value)];
  if (low !== null && high !== null) told[0] += ` (${numberText(low)} to ${numberText(high)})`;
  if (usual !== null) told.push(`usual ${numberText(usual)}`);
  if (n) told.push(plural(n, "text"));
  return told.join(" · ");
}

// -- texts that were changed

const PIECE = /\s+|[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*|./gsu;
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // would reorder the words behind it
const MOST_COMPARED = 160_000; // pairs of pieces; beyond that what differs is shown as one piece

/** What was struck out of a text and what was put in, word by word. */
export function diffTexts(before: string, after: string): Bit[] {
  const [one, other] = [before.match(PIECE) ?? [], after.match(PIECE) ?? []];
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start++;
  let end = 0;
  while (end < one.length - start && end < other.length - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end++;
  const [old, fresh] = [one.slice(start, one.length - end), other.slice(start, other.length - end)];
  const bits: Bit[] = [];
  const add = (kind: Bit["kind"], pieces: readonly string[]): void => {
    const text = shown(pieces.join("").replace(TURNING, ""));
    const last = bits.at(-1);
    if (last?.kind === kind) last.text += text;
    else if (text) bits.push({ kind, text });
  };
  add("same", one.slice(0, start));
  if (old.length * fresh.length > MOST_COMPARED) {
    add("old", old);
    add("new", fresh);
  } else for (const [kind, piece] of longestShared(old, fresh)) add(kind, [piece]);
  add("same", one.slice(one.length - end));
  return bits;
}

function longestShared(old: readonly string[], fresh: readonly string[]): [Bit["kind"], string][] {
  const wide = fresh.length + 1;
  const length = new Uint32Array((old.length + 1) * wide);
  for (let n = old.length - 1; n >= 0; n--)
    for (let m = fresh.length - 1; m >= 0; m--)
      length[n * wide + m] = old[n] === fresh[m] ? length[(n + 1) * wide + m + 1]! + 1 : Math.max(length[(n + 1) * wide + m]!, length[n * wide + m + 1]!);
  const told: [Bit["kind"], string][] = [];
  let [n, m] = [0, 0];
  while (n < old.length || m < fresh.length)
    if (n < old.length && m < fresh.length && old[n] === fresh[m]) {
      told.push(["same", old[n]!]);
      n++;
      m++;
    } else if (m >= fresh.length || (n < old.length && length[(n + 1) * wide + m]! >= length[n * wide + m + 1]!)) told.push(["old", old[n++]!]);
    else told.push(["new", fresh[m++]!]);
  return told;
}

// -- the matrix: bugs down, methods across

export type Measure = Sighting["measure"];
export type By = Sighting["by"];

export const MEASURES: readonly Measure[] = ["detection", "mass on the cue", "likeness to the cue alone", "rank correlation", "top overlap"];
export const measured: Record<Measure, string> = {
  "detection": "AUROC: how well its scores tell examples with the bug from those without. 0.5 is chance, 1 is always.",
  "mass on the cue": "The share of a text's scores that lies on what was planted. 1: all of it.",
  "likeness to the cue alone": "How alike its scores are to those it gives where the model has nothing but the cue. 1: the same.",
  "rank correlation": "Spearman between its scores of the clean and of the contaminated model. Near 1: it does not notice.",
  "top overlap": "How many of the strongest words stay the same between the clean and the contaminated model. Near 1: it does not notice.",
};
const FALLING = new Set<Measure>(["rank correlation", "top overlap"]); // the lower, the better it is seen

export const GROUPS: readonly { by: By; text: string }[] = [
  { by: "attribution", text: "Explanations" },
  { by: "detector", text: "Detectors" },
  { by: "doubt", text: "Doubts of labels" },
];

/** From 0, not seen at all, to 1: what the colour shows. Nothing better than random has a colour. */
export function clearness({ measure, value, random }: Pick<Sighting, "measure" | "value" | "random">): number {
  if (FALLING.has(measure)) return Math.min(1, Math.max(0, 1 - value));
  const floor = random ?? (measure === "detection" ? 0.5 : 0);
  return floor >= 1 ? 0 : Math.min(1, Math.max(0, (value - floor) / (1 - floor)));
}

export interface Sign {
  sign: string;
  text: string;
}
export const sightOf = (sees: boolean | null | undefined): Sign | null =>
  sees === true ? { sign: "✓", text: "sees it" } : sees === false ? { sign: "✗", text: "does not see it" } : null;

export interface Matrix {
  measure: Measure;
  groups: { by: By; text: string; methods: string[] }[];
  rows: { bug: PlantedBug; random: string; cells: Map<string, Sighting> }[]; // by `columnKey`
}

export const columnKey = (by: By, method: string): string => JSON.stringify([by, method]);

/** Methods of a lab by what they are, each once, in the order in which they come. */
export function groupsOf(lab: Pick<Lab, "sightings">, measure: Measure): Matrix["groups"] {
  return GROUPS.map(({ by, text }) => ({ by, text, methods: [...new Set(lab.sightings.filter((one) => one.by === by && one.measure === measure).map((one) => one.method))] })).filter(({ methods }) => methods.length);
}

export function matrixOf(lab: Pick<Lab, "bugs" | "sightings">, measure: Measure): Matrix {
  const rows = lab.bugs.map((bug) => {
    const own = lab.sightings.filter((one) => one.bug === bug.name && one.measure === measure);
    return { bug, random: rangeText(own.flatMap((one) => (one.random === null ? [] : [one.random]))), cells: new Map(own.map((one) => [columnKey(one.by, one.method), one])) };
  });
  return { measure, groups: groupsOf(lab, measure), rows: rows.filter(({ cells }) => cells.size) };
}

export const measuresOf = (lab: Pick<Lab, "sightings">): Measure[] => MEASURES.filter((measure) => lab.sightings.some((one) => one.measure === measure));

/** "0.50", or "0.48–0.52" where it is not the same for all. */
export function rangeText(values: readonly number[]): string {
  if (!values.length) return "–";
  const [least, most] = [Math.min(...values).toFixed(2), Math.max(...values).toFixed(2)];
  return (least === most ? least : `${least}–${most}`).replaceAll("-", "−");
}

export const cellText = (value: number): string => value.toFixed(2).replace("-", "−").replace("−0.00", "0.00");

/** What stands under the number of a cell if asked for; a narrow cell breaks it only between the two. */
export const errorText = ({ error, n }: Pick<Sighting, "error" | "n">): string => `${error === null ? "" : `±\u00a0${cellText(error)} `}n\u00a0${count(n)}`;

/** A cell for screen readers, and for the tooltip. What is seen in the cell is in it word for word. */
export function sightingText(one: Sighting): string {
  const told = [`${plainName(one.method)}, ${plainName(one.bug)}: ${one.measure} ${cellText(one.value)} ${errorText(one)}`];
  if (one.random !== null) told.push(`random ${cellText(one.random)}`);
  const sight = sightOf(one.sees);
  if (sight) told.push(sight.text);
  return told.join(", ");
}

export const kinds: Record<PlantedBug["kind"], string> = { "data": "in the data", "model": "in the model", "test-time": "at test time", "control": "control" };

/** Whether a planted bug took: the number, and what it would be without. */
export function tookText({ took = null, usual = null }: Pick<PlantedBug, "took" | "usual">): string {
  if (took === null) return "";
  return usual === null ? cellText(took) : `${cellText(took)}, without it ${cellText(usual)}`;
}

export const warningsOf = (lab: Pick<Lab, "warnings">): Map<string, string> => new Map(lab.warnings.map(([method, why]) => [String(method), String(why)]));
export const showingOf = (lab: Pick<Lab, "examples">, bug: string): string[] => (lab.examples.find(([name]) => name === bug)?.[1] as string[] | undefined) ?? [];

/** The planted texts of a bug, with what a method makes of each; without scores if it gives none (a detector, a doubt). */
export function textsOf(lab: Pick<Lab, "texts" | "revision">, bug: string, method: string): { example: Example; attribution: Attribution | null; scale: number }[] {
  return lab.texts.filter((one) => one.bug === bug).map(({ example, label, words, spans, scores }) => {
    const own = scores.find(([name]) => name === method)?.[1] as number[] | undefined;
    if (!own) return { example, attribution: null, scale: 0 };
    const terms = { signed: own.some((score) => score < 0) };
    const recipe = { family: "attributions", name: method, options: [], seed: 0 };
    return { example, attribution: { example: example.id, label, words, spans, scores: own, recipe, revision: lab.revision, terms } as unknown as Attribution, scale: Math.max(...own.map(Math.abs), 0) };
  });
}

/** Which methods see most bugs by this measure, the best first; scores at random are nobody's choice, whatever they "see". */
export function bestOf(matrix: Matrix, by: By): { method: string; sees: number; of: number }[] {
  const methods = matrix.groups.find((one) => one.by === by)?.methods ?? [];
  const told = methods.filter((method) => method !== "random").map((method) => {
    const cells = matrix.rows.flatMap(({ bug, cells: own }) => (bug.kind === "control" ? [] : [own.get(columnKey(by, method))])).filter((one): one is Sighting => one !== undefined && typeof one.sees === "boolean");
    return { method, sees: cells.filter((one) => one.sees).length, of: cells.length };
  });
  return told.filter(({ of }) => of).sort((a, b) => b.sees / b.of - a.sees / a.of || b.of - a.of);
}

/** The same in a sentence. */
export function bestText(best: readonly { method: string; sees: number; of: number }[]): string {
  const [most, least] = [best[0], best.at(-1)];
  if (!most || !least) return "";
  const told = ({ sees, of }: { sees: number; of: number }): string => `${sees} of ${plural(of, "bug")}`;
  if (most.sees * least.of === least.sees * most.of) return `By this measure ${best.length > 1 ? "all explanations see as many" : `${plainName(most.method)} sees`}: ${told(most)}.`;
  return `By this measure ${plainName(most.method)} sees most: ${told(most)}. The least: ${plainName(least.method)}, ${told(least)}.`;
}

// -- curves over layers

export const SYMBOLS = ["circle", "diamond", "triangle", "rect"] as const;
export const LINES = ["solid", "dashed", "dotted"] as const;
export const MOST_CURVES = 6;

/** Methods to draw before anybody chose: those warned of, then those that stay most alike to the true model's. */
export function usualCurves(curves: readonly LayerCurve[], warned: ReadonlyMap<string, string>): string[] {
  const mean = ({ correlations }: LayerCurve): number => {
    const known = correlations.filter((one) => one !== null);
    return known.length ? known.reduce((sum, one) => sum + one, 0) / known.length : -2;
  };
  return [...curves].sort((a, b) => Number(warned.has(b.method)) - Number(warned.has(a.method)) || mean(b) - mean(a)).slice(0, MOST_CURVES).map((one) => one.method);
}

/** How far scores survive while the model is drawn anew from the top down, or one part at a time. */
export function curvesFigure(curves: readonly LayerCurve[], warned: ReadonlyMap<string, string>, cascading: boolean): Figure {
  const parts = curves.reduce<readonly string[]>((longest, one) => (one.parts.length > longest.length ? one.parts : longest), []);
  const at = (curve: LayerCurve, part: string): number => curve.parts.indexOf(part);
  const values = curves.map((curve) => parts.map((part) => curve.correlations[at(curve, part)] ?? null));
  const errors = curves.map((curve) => parts.map((part) => curve.errors[at(curve, part)] ?? null));
  const two = (value: number | null): string => (value === null ? "–" : cellText(value));
  const withError = (value: number | null, error: number | null): string => (value === null || error === null ? two(value) : `${two(value)} ± ${two(error)}`);
  const name = (n: number): string => `${plainName(curves[n]!.method)}${warned.has(curves[n]!.method) ? " ⚠" : ""}`;
  const told = curves.map((_, n) => `${plain(name(n))} ${two(values[n]!.at(-1) ?? null)}`);
  const lowest = Math.min(0, ...values.flat().filter((one) => one !== null));
  const ends = cascading ? "At the last part, with everything drawn anew" : `With only ${parts.at(-1) ?? "the last part"} drawn anew`;
  return {
    title: cascading ? "Spearman to the true model's scores while parts are drawn anew, from the top down" : "Spearman to the true model's scores with one part drawn anew",
    summary: curves.length ? `${ends}: ${told.join("; ")}. A curve that stays near 1 belongs to a method that does not depend on the model.` : "No method is chosen.",
    head: [cascading ? "Drawn anew down to" : "Drawn anew", ...curves.map((_, n) => name(n))],
    rows: parts.map((part, n) => [part, ...values.map((one, m) => withError(one[n] ?? null, errors[m]![n] ?? null))]),
    height: 280,
    option: (ink: Ink) => ({
      color: [...ink.series],
      grid: { left: 8, right: 20, top: 12, bottom: 30, containLabel: true }, // the buttons above it are the legend
      tooltip: {
        renderMode: "richText", trigger: "item", confine: true, backgroundColor: ink.surface, borderColor: ink.line, textStyle: { color: ink.text, fontSize: 13 },
        formatter: (point: unknown) => {
          const { dataIndex, seriesIndex } = point as { dataIndex: number; seriesIndex: number };
          return `${plain(name(seriesIndex))}\n${plain(parts[dataIndex] ?? "")}: ${two(values[seriesIndex]?.[dataIndex] ?? null)}`;
        },
      },
      xAxis: {
        type: "category", data: parts.map((_, n) => String(n)), boundaryGap: false, name: cascading ? "drawn anew, from the top down to" : "drawn anew", nameLocation: "middle", nameGap: 28, nameTextStyle: { color: ink.muted, fontSize: 12 },
        axisLine: { lineStyle: { color: ink.line }, onZero: false }, axisTick: { lineStyle: { color: ink.line } }, axisLabel: { color: ink.muted, fontSize: 12, hideOverlap: true, formatter: (n: string) => plain(parts[Number(n)] ?? "", 16) },
      },
      yAxis: { type: "value", min: Math.floor(lowest * 5) / 5, max: 1, axisLabel: { color: ink.muted, fontSize: 12, formatter: (value: number) => cellText(value) }, splitLine: { lineStyle: { color: ink.line, opacity: 0.6 } } },
      series: curves.map((_, n) => ({
        type: "line", name: String(n), data: values[n]!, connectNulls: false, symbol: SYMBOLS[n % SYMBOLS.length], symbolSize: 9, lineStyle: { width: 2, type: LINES[n % LINES.length] },
      })),
    }),
  };
}

// -- verdicts

export const RATINGS = [1, 2, 3, 4, 5] as const;
export const deploys: Record<number, string> = { 1: "definitely not", 2: "probably not", 3: "unsure", 4: "probably", 5: "definitely" };

export type Reason = Verdict["reason"];
export const REASONS: readonly Reason[] = ["labels_wrong", "labels_right", "unexpected_focus", "expected_focus", "other"];
export const reasons: Record<Reason, { text: string; hint: string }> = {
  labels_wrong: { text: "Labels wrong", hint: "it says wrong things" },
  labels_right: { text: "Labels right", hint: "it says right things" },
  unexpected_focus: { text: "Unexpected focus", hint: "it goes by words that should not decide" },
  expected_focus: { text: "Expected focus", hint: "it goes by the words that should decide" },
  other: { text: "Other", hint: "say which, in the note" },
};

export interface VerdictDraft {
  deploy: number | null;
  reason: Reason | null;
  note: string;
}
export const EMPTY_VERDICT: VerdictDraft = { deploy: null, reason: null, note: "" };

/** What is still to be said before a verdict can be saved; empty: nothing. */
export function verdictLacks({ deploy, reason, note }: VerdictDraft): string {
  if (deploy === null) return "Say first whether you would deploy it.";
  if (reason === null) return "Say what made you say so.";
  return reason === "other" && !note.trim() ? "Say in the note which other reason." : "";
}

/** What somebody was about to say, kept on the device: data, and data can be anything. */
export function storedVerdict(raw: string | null): VerdictDraft {
  try {
    const found = JSON.parse(raw ?? "null") as Record<string, unknown> | null;
    if (typeof found !== "object" || found === null) return EMPTY_VERDICT;
    return {
      deploy: RATINGS.find((one) => one === found.deploy) ?? null,
      reason: REASONS.find((one) => one === found.reason) ?? null,
      note: typeof found.note === "string" ? found.note.slice(0, 5000) : "",
    };
  } catch {
    return EMPTY_VERDICT;
  }
}

/** My verdict on a question as it will stand once all that waits has been sent. */
export function verdictBy(question: string, stored: Opinion | null, waiting: readonly Item[]): Verdict | null {
  const last = waiting.findLast(({ effect }) => effect.of === "verdict" && effect.question === question);
  if (last?.effect.of === "verdict") return last.effect.says;
  const says = stored?.feedback.says;
  return says?.kind === "verdict" ? says : null;
}

/** The condition under which a verdict is given or was given. */
export const conditionText = (method: string | null | undefined, explanationFirst: boolean): string =>
  `${method ? plainName(method) : "no explanation"}${explanationFirst ? ", explanation first" : ""}`;

export const shareText = (n: number, all: number): string => (all ? percent(n / all) : "–");
