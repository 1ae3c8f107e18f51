/** From counterfactuals to what is shown and asked: sentences and masks, steps and diffs, ratings, the chart, the risk. */
import type { EChartsCoreOption } from "echarts/core";
import type { LocationQuery, LocationQueryRaw } from "vue-router";

import { plain, type Ink } from "./figures";
import { lookOf, queryOf, type Look } from "./filter";
import { shown } from "./heat";
import type { Edit, Filter, FlipDesk, FlipDot, FlipRating, FlipView, Job, Prediction, Risk, Sentence, Sort, Span, Step } from "./types";
import { count, percent, plainName, plural } from "./words";

// -- what the address says

export interface FlipLook {
  filter: Filter;
  sort: Sort;
  sentence: number | null; // of the example; null: the one that matters most
  method: string | null; // the generator; null: the first that works
  flip: string | null; // the one that is open; null: the newest
  all: boolean; // the chart of all and the risk, not one example
  revision: string | null; // that these are of; null: the one in use
}

const USUAL: Pick<Look, "set" | "view"> = { set: null, view: "map" };

const text = (query: LocationQuery, name: string): string | null => {
  const value = query[name];
  const first = Array.isArray(value) ? value[0] : value;
  return first ? first.slice(0, 200) : null;
};

/** As on the examples, only that here all of them are listed unless somebody narrows: nobody judges words. */
export function flipLookOf(query: LocationQuery): FlipLook {
  const { filter, sort } = lookOf({ ...query, correct: query.correct ?? "any" });
  const sentence = text(query, "sentence");
  const flip = text(query, "flip");
  return {
    filter, sort,
    sentence: sentence !== null && /^\d{1,6}$/.test(sentence) ? Number(sentence) : null,
    method: text(query, "method"),
    flip: flip !== null && /^[0-9a-f]{16}$/.test(flip) ? flip : null,
    all: text(query, "show") === "all",
    revision: text(query, "revision"),
  };
}

export function flipQueryOf(look: FlipLook): LocationQueryRaw {
  const { correct, ...query } = queryOf({ ...USUAL, filter: look.filter, sort: look.sort });
  if (look.filter.correct === true) query.correct = "true";
  else if (correct === "false") query.correct = correct;
  if (look.sentence !== null) query.sentence = String(look.sentence);
  if (look.method) query.method = look.method;
  if (look.flip) query.flip = look.flip;
  if (look.all) query.show = "all";
  if (look.revision) query.revision = look.revision;
  return query;
}

// -- sentences, and what may be changed

/** The sentence that matters most: of those with words of the rationale, or of all where there are none, the weightiest. */
export function mainSentence(sentences: readonly Sentence[]): number {
  const telling = (one: Sentence): number => Number(one.rationale.length > 0);
  const better = (one: Sentence, other: Sentence): boolean => telling(one) > telling(other) || (telling(one) === telling(other) && one.weight > other.weight);
  return sentences.reduce((best, one, n) => (better(one, sentences[best]!) ? n : best), 0);
}

/** Which sentences are shown: those with words of the rationale, weightiest first; or all in the order of the text. */
export function shownSentences(sentences: readonly Sentence[], chosen: number, all: boolean): number[] {
  const numbers = sentences.map((_, n) => n);
  const telling = numbers.filter((n) => sentences[n]!.rationale.length);
  if (all || !telling.length) return numbers;
  telling.sort((a, b) => sentences[b]!.weight - sentences[a]!.weight || a - b);
  return telling.includes(chosen) || !sentences[chosen] ? telling : [...telling, chosen];
}

export type Choice = "rationale" | "sentence" | "text" | "none";

/** The words that a choice lets be changed. */
export function maskOf(desk: Pick<FlipDesk, "sentences" | "words">, chosen: number, choice: Choice): number[] {
  const sentence = desk.sentences[chosen];
  if (choice === "text") return desk.words.map((_, n) => n);
  if (choice === "none" || !sentence) return [];
  return [...(choice === "rationale" ? sentence.rationale : sentence.words)];
}

/** What may be changed before anybody has said so: the rationale's words of the sentence; without any, all of them. */
export function usualMask(desk: Pick<FlipDesk, "sentences" | "words">, chosen: number): number[] {
  const own = maskOf(desk, chosen, "rationale");
  return own.length ? own : maskOf(desk, chosen, "sentence");
}

export const choiceOf = (desk: Pick<FlipDesk, "sentences" | "words">, chosen: number, mask: ReadonlySet<number>): Choice | null =>
  (["none", "text", "sentence", "rationale"] as const).find((choice) => {
    const words = maskOf(desk, chosen, choice);
    return words.length === mask.size && words.every((word) => mask.has(word));
  }) ?? null;

// -- words and changes in the raw text

export interface Bit {
  kind: "same" | "old" | "new";
  text: string;
}

export interface WordBit {
  at: number; // number of the word
  gap: string; // blanks and the like before it
  word: string;
}

const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // would reorder the words behind it

const partOf = (span: Span): "text" | "pair" => span.part ?? "text";

/** Words by number with what stands between them. Positions are code points, which JavaScript does not count in. */
export function wordsAt(desk: Pick<FlipDesk, "example" | "spans">, numbers: readonly number[]): WordBit[] {
  const points = { text: Array.from(desk.example.text), pair: Array.from(desk.example.pair ?? "") };
  return numbers.map((at, n) => {
    const span = desk.spans[at]!;
    const raw = points[partOf(span)];
    const before = desk.spans[numbers[n - 1] ?? -1];
    const follows = n > 0 && numbers[n - 1] === at - 1 && before && partOf(before) === partOf(span);
    const gap = follows ? raw.slice(before.end, span.start).join("") : n ? " … " : "";
    return { at, gap: shown(gap.replace(TURNING, "")), word: shown(raw.slice(span.start, span.end).join("")) };
  });
}

/** A change as what is struck out, what is put in and what stays: "not good" for "good" only puts in. */
export function changeBits(edit: Edit): Bit[] {
  const [old, fresh] = [shown(edit.old), shown(edit.new)];
  if (!fresh) return [{ kind: "old", text: old }];
  if (fresh.endsWith(` ${old}`)) return [{ kind: "new", text: fresh.slice(0, -old.length - 1) }, { kind: "same", text: ` ${old}` }];
  if (fresh.startsWith(`${old} `)) return [{ kind: "same", text: `${old} ` }, { kind: "new", text: fresh.slice(old.length + 1) }];
  return [{ kind: "old", text: old }, { kind: "same", text: " " }, { kind: "new", text: fresh }];
}

/** The words `numbers` of an example with `now` as changes and `earlier` as if they had always been so. */
export function diffBits(desk: Pick<FlipDesk, "example" | "spans">, numbers: readonly number[], now: readonly Edit[], earlier: readonly Edit[] = []): Bit[] {
  const changing = new Map(now.map((edit) => [edit.position, edit]));
  const changed = new Map(earlier.map((edit) => [edit.position, edit]));
  const bits: Bit[] = [];
  const add = (bit: Bit): void => {
    const last = bits.at(-1);
    if (last && last.kind === "same" && bit.kind === "same") last.text += bit.text;
    else if (bit.text) bits.push({ ...bit });
  };
  for (const { at, gap, word } of wordsAt(desk, numbers)) {
    add({ kind: "same", text: gap });
    const edit = changing.get(at);
    if (edit) changeBits(edit).forEach(add);
    else add({ kind: "same", text: changed.has(at) ? shown(changed.get(at)!.new) : word });
  }
  return bits;
}

const AROUND = 4; // words on each side of a change

/** A step in its surroundings: the words around what it changes. */
export function around(desk: Pick<FlipDesk, "example" | "spans">, edits: readonly Edit[], reach = AROUND): { numbers: number[]; cutBefore: boolean; cutAfter: boolean } {
  const wanted = new Set<number>();
  const last = desk.spans.length - 1;
  for (const { position } of edits)
    for (let n = Math.max(0, position - reach); n <= Math.min(last, position + reach); n++)
      if (desk.spans[position] && partOf(desk.spans[n]!) === partOf(desk.spans[position])) wanted.add(n);
  const numbers = [...wanted].sort((a, b) => a - b);
  const edge = (n: number | undefined, step: number): boolean => n !== undefined && desk.spans[n + step] !== undefined && partOf(desk.spans[n + step]!) === partOf(desk.spans[n]!);
  return { numbers, cutBefore: edge(numbers[0], -1), cutAfter: edge(numbers.at(-1), 1) };
}

/** A change in words, for lists and screen readers. */
export function changeText({ old, new: fresh }: Edit): string {
  const [was, now] = [shown(old), shown(fresh)];
  if (!now) return `leave out “${was}”`;
  if (now.endsWith(` ${was}`)) return `put “${now.slice(0, -was.length - 1)}” before “${was}”`;
  if (now.startsWith(`${was} `)) return `put “${now.slice(was.length + 1)}” after “${was}”`;
  return `“${now}” for “${was}”`;
}

// -- the way to a flip

export function best(prediction: Prediction): { label: string; share: number } {
  const share = prediction.probabilities.reduce((a, b) => Math.max(a, b), 0);
  return { label: prediction.labels[prediction.probabilities.indexOf(share)] ?? "", share };
}

export const shareOf = (prediction: Prediction, label: string): number => prediction.probabilities[prediction.labels.indexOf(label)] ?? 0;

/** The label whose probability tells how far it is: the one sought, or the strongest that is not the first one's. */
export function soughtLabel({ flip }: Pick<FlipView, "flip">): string {
  if (flip.target) return flip.target;
  const from = best(flip.before).label;
  const others = flip.after.labels.map((label, n) => ({ label, share: flip.after.probabilities[n] ?? 0 })).filter((one) => one.label !== from);
  return others.reduce((a, b) => (b.share > a.share ? b : a), others[0] ?? { label: from, share: 0 }).label;
}

export interface StepRow {
  n: number;
  step: Step;
  earlier: Edit[]; // made in the steps before
  needed: boolean; // among the changes that are left in the end
  before: number; // probability of the label sought
  after: number;
  label: string; // predicted after it
}

const same = (one: Edit, other: Edit): boolean => one.position === other.position && one.new === other.new;

export function stepRows(view: Pick<FlipView, "flip">): StepRow[] {
  const { flip } = view;
  const label = soughtLabel(view);
  const rows: StepRow[] = [];
  let share = shareOf(flip.before, label);
  let earlier: Edit[] = [];
  for (const [n, step] of flip.steps.entries()) {
    const after = shareOf(step.after, label);
    const needed = step.edits.some((edit) => flip.edits.some((kept) => same(edit, kept)));
    rows.push({ n, step, earlier, needed, before: share, after, label: best(step.after).label });
    earlier = [...earlier, ...step.edits];
    share = after;
  }
  return rows;
}

/** The changes to go on from when another one is chosen at a step. */
export const startWith = (rows: readonly StepRow[], n: number, chosen: Edit): Edit[] => [...(rows[n]?.earlier ?? []).filter((edit) => edit.position !== chosen.position), chosen];

/** What a search came to, in a sentence; told as found even if it is an attempt. */
export function outcome(view: Pick<FlipView, "flip" | "flips">, most: number): string {
  const { flip } = view;
  const after = best(flip.after);
  if (view.flips) return `${plural(flip.edits.length, "change")} and the model says ${after.label}.`;
  const tried = Math.max(most, flip.edits.length);
  return `No flip within ${plural(tried, "change")}.`;
}

/** What a recipe or a search says the most changes are. */
export function mostEdits(search: readonly { name: string; default: unknown }[], given: Readonly<Record<string, unknown>> = {}): number {
  const value = given.max_edits ?? search.find((option) => option.name === "max_edits")?.default;
  return typeof value === "number" ? value : 5;
}

// -- ratings

export const QUESTIONS = ["plausible", "meaningful", "agrees"] as const;
export type Question = (typeof QUESTIONS)[number];

export const asked: Record<Question, { text: string; low: string; high: string }> = {
  plausible: { text: "Could a person have written this?", low: "no way", high: "certainly" },
  meaningful: { text: "Does it make sense?", low: "no sense", high: "full sense" },
  agrees: { text: "Do you agree with the prediction?", low: "not at all", high: "fully" },
};

/** Answers so far: nothing where a question is open, null where it does not apply. */
export type Draft = Partial<Record<Question, number | null>> & { label?: string | null };

export const openQuestion = (draft: Draft): Question | null => QUESTIONS.find((question) => draft[question] === undefined) ?? null;

export const draftOf = (says: FlipRating): Draft => ({ plausible: says.plausible, meaningful: says.meaningful, agrees: says.agrees, label: says.label ?? null });

/** The answer, once no question is open. */
export function ratingOf(draft: Draft, flip: string): FlipRating | null {
  const { plausible, meaningful, agrees, label = null } = draft;
  if (plausible === undefined || meaningful === undefined || agrees === undefined) return null;
  return { kind: "flip_rating", counterfactual: flip, plausible, meaningful, agrees, label };
}

export const sameRating = (one: FlipRating | null, other: FlipRating | null): boolean =>
  one === other || (one !== null && other !== null && QUESTIONS.every((question) => one[question] === other[question]) && (one.label ?? null) === (other.label ?? null));

/** A draft that was kept on the device: data, and data can be anything. */
export function storedDraft(raw: string | null): Draft {
  try {
    const found: unknown = JSON.parse(raw ?? "{}");
    if (typeof found !== "object" || found === null) return {};
    const kept = found as Record<string, unknown>;
    const draft: Draft = {};
    for (const question of QUESTIONS) {
      const value = kept[question];
      if (value === null || (typeof value === "number" && [1, 2, 3, 4, 5].includes(value))) draft[question] = value;
    }
    if (typeof kept.label === "string") draft.label = kept.label;
    return draft;
  } catch {
    return {};
  }
}

export const ratingText = (says: FlipRating): string =>
  QUESTIONS.map((question) => `${{ plausible: "plausible", meaningful: "makes sense", agrees: "agrees" }[question]} ${says[question] ?? "n/a"}`).join(", ") + (says.label ? `, ‘${says.label}’` : "");

// -- jobs

const isOpen = (job: Job): boolean => job.state === "queued" || job.state === "running";

/** The search for flips of one example that waits or is at work; newest first. */
export function searchOf(jobs: readonly Job[], project: string, place: number): Job | null {
  return jobs.find((job) => {
    const places = (job.options as { places?: unknown }).places;
    return job.kind === "flips" && job.project === project && isOpen(job) && Array.isArray(places) && places.length === 1 && places[0] === place;
  }) ?? null;
}

/** The first flip that a search found, where it says so. */
export function foundBy(job: Job): string | null {
  const flips = (job.result as { flips?: unknown } | null)?.flips;
  return Array.isArray(flips) && typeof flips[0] === "string" ? flips[0] : null;
}

// -- the chart of all

export type Distance = "share" | "edits" | "similarity";
export const distances: Record<Distance, string> = { share: "Share of words changed", edits: "Words changed", similarity: "Similarity of the two texts" };

export const distanceOf = (dot: FlipDot, by: Distance): number | null => dot[by];
export const distanceText = (dot: FlipDot, by: Distance): string => {
  const value = distanceOf(dot, by);
  return value === null ? "–" : by === "share" ? percent(value) : by === "edits" ? count(value) : value.toFixed(2);
};

/** The ways they were found, the most frequent first: each has a colour, and those beyond the palette share the last. */
export function generators(dots: readonly FlipDot[]): string[] {
  const times = new Map<string, number>();
  for (const { method } of dots) times.set(method, (times.get(method) ?? 0) + 1);
  return [...times].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([name]) => name);
}

export function chartSummary(dots: readonly FlipDot[], total: number): string {
  if (!dots.length) return "No text has been rewritten yet.";
  const flips = dots.filter((dot) => dot.flips);
  const mean = flips.length ? flips.reduce((sum, dot) => sum + dot.edits, 0) / flips.length : null;
  const newest = total > dots.length ? ` of the newest ${count(dots.length)} of ${count(total)}` : ` of ${count(dots.length)}`;
  const cost = mean === null ? "" : `, with ${mean.toFixed(1)} ${mean === 1 ? "change" : "changes"} on average`;
  return `${count(flips.length)}${newest} rewritten texts flip${cost}. You have rated ${count(dots.filter((dot) => dot.rated).length)}.`;
}

/** A dot for each: how far it is from the original, and how sure the model is of what it says then. */
export function chartOption(dots: readonly FlipDot[], by: Distance): (ink: Ink) => EChartsCoreOption {
  const names = generators(dots);
  const drawn = dots.filter((dot) => distanceOf(dot, by) !== null);
  return (ink) => {
    const axis = {
      axisLine: { lineStyle: { color: ink.line } }, axisTick: { lineStyle: { color: ink.line } }, axisLabel: { color: ink.muted, fontSize: 12, hideOverlap: true },
      nameTextStyle: { color: ink.muted, fontSize: 12 }, splitLine: { lineStyle: { color: ink.line, opacity: 0.5 } },
    };
    const colourOf = (dot: FlipDot): string => ink.series[Math.min(names.indexOf(dot.method), ink.series.length - 1)] ?? ink.accent;
    return {
      grid: { left: 12, right: 24, top: 16, bottom: 34, containLabel: true },
      tooltip: {
        renderMode: "richText", trigger: "item", confine: true,
        formatter: (at: unknown) => {
          const dot = drawn[(at as { dataIndex: number }).dataIndex];
          if (!dot) return "";
          const lines = [`Example ${dot.place + 1} · ${plain(plainName(dot.method))}`, dot.flips ? `${plain(dot.before)} → ${plain(dot.after)} ${percent(dot.probability)}` : `no flip: still ${plain(dot.after)} ${percent(dot.probability)}`, `${plural(dot.edits, "word")} changed (${percent(dot.share)})`];
          return [...lines, dot.rated ? "rated by you" : "not rated by you"].join("\n");
        },
      },
      xAxis: {
        type: "value", name: distances[by], nameLocation: "middle", nameGap: 28, scale: by === "similarity", ...(by === "edits" ? { minInterval: 1 } : {}), ...axis,
        axisLabel: { ...axis.axisLabel, ...(by === "share" ? { formatter: (value: number) => percent(value) } : {}) },
      },
      yAxis: { type: "value", min: 0, max: 1, ...axis, axisLabel: { ...axis.axisLabel, formatter: (value: number) => percent(value) } },
      series: [
        {
          type: "scatter",
          cursor: "pointer",
          data: drawn.map((dot) => ({
            value: [distanceOf(dot, by), dot.probability],
            symbol: dot.flips ? "circle" : "diamond",
            symbolSize: dot.flips ? 12 : 14,
            itemStyle: dot.rated ? { color: colourOf(dot), borderColor: ink.surface, borderWidth: 1 } : { color: ink.surface, borderColor: colourOf(dot), borderWidth: 2 },
          })),
        },
      ],
    };
  };
}

/** The dot that the chart drew as number `n`. */
export const drawnDot = (dots: readonly FlipDot[], by: Distance, n: number): FlipDot | null => dots.filter((dot) => distanceOf(dot, by) !== null)[n] ?? null;

// -- the risk

export const MOST_RISK = 4;
export const sliceNames: Record<Risk["slices"][number]["by"], string> = {
  label: "By predicted label before", after: "By predicted label after", group: "By group", generator: "By generator", author: "By person", outcome: "By outcome",
};

export const two = (value: number): string => value.toFixed(2);
export const interval = (one: { low: number | null; high: number | null }): string => (one.low === null || one.high === null ? "" : `${two(one.low)} to ${two(one.high)}`);

/** The parts that tell something: those that fall into two or more. */
export function riskParts(risk: Risk): { by: keyof typeof sliceNames; title: string; slices: Risk["slices"] }[] {
  const kinds = ["label", "after", "group", "generator", "author", "outcome"] as const;
  return kinds.map((by) => ({ by, title: sliceNames[by], slices: risk.slices.filter((one) => one.by === by) })).filter((part) => part.slices.length > 1);
}

/** Examples where people disagree with the model, the most first; each once, as the one who disagrees most sees it. */
export function riskiest(risk: Risk, most: number): Risk["local"] {
  const seen = new Set<string>();
  return risk.local.filter((one) => one.value > 0 && !seen.has(one.example) && seen.add(one.example)).slice(0, most);
}
