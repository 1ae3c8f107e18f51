/** From a test case and the training examples behind it to what is shown and asked: shared words, ratings, copies. */
import type { LocationQuery, LocationQueryRaw } from "vue-router";

import type { Parsed } from "./fixing";
import { shown, visibleForm } from "./heat";
import type { Effect, Item } from "./outbox";
import type { AnchorView, CopyView, Example, Job, Method, NeighbourOffer, NeighbourRating, NeighbourView, NewCopies, Opinion, Options, Relabel } from "./types";
import { count, plural } from "./words";

// -- what the address says

export interface NeighbourLook {
  train: number | null; // place of the training example that is open; null: the first that waits
  harmful: boolean; // those that worked against the label, not those that helped
  revision: string | null; // that was traced; null: the one in use
  waiting: boolean; // of the list: only anchors with pairs that I have not rated
  pick: number[]; // places to trace, put into the form
}

const MOST_PICKED = 1000;

const first = (query: LocationQuery, name: string): string => {
  const value = query[name];
  return ((Array.isArray(value) ? value[0] : value) ?? "").slice(0, 4000);
};

export function neighbourLookOf(query: LocationQuery): NeighbourLook {
  const train = first(query, "train");
  return {
    train: /^\d{1,6}$/.test(train) ? Number(train) : null,
    harmful: first(query, "side") === "harmful",
    revision: first(query, "revision").slice(0, 200) || null,
    waiting: first(query, "waiting") === "true",
    pick: first(query, "pick").split(",").filter((one) => /^\d{1,6}$/.test(one)).map(Number).slice(0, MOST_PICKED),
  };
}

export function neighbourQueryOf(look: NeighbourLook): LocationQueryRaw {
  const query: LocationQueryRaw = {};
  if (look.train !== null) query.train = String(look.train);
  if (look.harmful) query.side = "harmful";
  if (look.revision) query.revision = look.revision;
  if (look.waiting) query.waiting = "true";
  if (look.pick.length) query.pick = look.pick.join(",");
  return query;
}

// -- which examples to trace

/** "3, 17 20-22" as places from 0; people count from 1. */
export function parsePlaces(text: string, examples: number): Parsed<number> {
  const no = (wrong: string): Parsed<number> => ({ values: [], wrong });
  const values = new Set<number>();
  for (const piece of text.split(/[\s,;]+/).filter(Boolean)) {
    const found = /^#?(\d{1,7})(?:[-–](\d{1,7}))?$/.exec(piece);
    if (!found) return no(`“${piece.slice(0, 30)}” is no number of an example: write numbers as the screen Examples shows them, such as 3, 17 or 20-22.`);
    const [from, to] = [Number(found[1]), Number(found[2] ?? found[1])];
    if (from < 1 || to < from || to > examples) return no(`There is no example ${count(to > examples ? to : from)}: they are numbered from 1 to ${count(examples)}.`);
    if (to - from >= MOST_PICKED) return no(`At most ${count(MOST_PICKED)} examples at once.`);
    for (let n = from; n <= to; n++) values.add(n - 1);
    if (values.size > MOST_PICKED) return no(`At most ${count(MOST_PICKED)} examples at once.`);
  }
  return { values: [...values].sort((a, b) => a - b), wrong: "" };
}

/** The method to offer first: the usual one, or the first that works here. */
export const firstUsable = (methods: readonly Method[], usual: string): string => (methods.find((one) => one.usable && one.name === usual) ?? methods.find((one) => one.usable))?.name ?? "";

// -- words that both have

export interface SharedBit {
  text: string;
  shared: boolean; // or marked for another reason
}

const WORD = /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*(?:['’-][\p{L}\p{M}\p{N}]+)*/gu;
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // would reorder the words behind it

const wordsOf = ({ text, pair }: Pick<Example, "text" | "pair">): string[] => `${text}\n${pair ?? ""}`.match(WORD) ?? [];

/** Words in both examples, whichever side of a pair they are on, as they look in the first; each once. */
export function sharedWords(one: Pick<Example, "text" | "pair">, other: Pick<Example, "text" | "pair">): Map<string, string> {
  const there = new Set(wordsOf(other).map(visibleForm));
  const both = new Map<string, string>();
  for (const word of wordsOf(one)) {
    const form = visibleForm(word);
    if (there.has(form) && !both.has(form)) both.set(form, word);
  }
  return both;
}

function bitsOf(text: string, marked: (form: string) => boolean): SharedBit[] {
  const bits: SharedBit[] = [];
  const add = (piece: string, shared: boolean): void => {
    const told = shown(piece.replace(TURNING, ""));
    const last = bits.at(-1);
    if (last && !last.shared && !shared) last.text += told;
    else if (told) bits.push({ text: told, shared });
  };
  let end = 0;
  for (const found of text.matchAll(WORD)) {
    add(text.slice(end, found.index), false);
    add(found[0], marked(visibleForm(found[0])));
    end = found.index + found[0].length;
  }
  add(text.slice(end), false);
  return bits;
}

/** A text in pieces, those words marked that both examples have. */
export const sharedBits = (text: string, both: ReadonlyMap<string, string>): SharedBit[] => bitsOf(text, (form) => both.has(form));

/** A copy in pieces, those words marked that its original does not have. */
export function freshBits(text: string, original: Pick<Example, "text" | "pair">): SharedBit[] {
  const there = new Set(wordsOf(original).map(visibleForm));
  return bitsOf(text, (form) => !there.has(form));
}

const NAMED = 12;

export function sharedText(both: ReadonlyMap<string, string>): string {
  if (!both.size) return "No word is in both.";
  const words = [...both.values()].slice(0, NAMED).map(shown).join(", ");
  const more = both.size > NAMED ? ` and ${count(both.size - NAMED)} more` : "";
  return `${plural(both.size, "word")} in both: ${words}${more}.`;
}

// -- what people say of the two

export const RATINGS = [1, 2, 3, 4, 5] as const;
export const rungs: Record<number, string> = { 1: "very different", 2: "rather different", 3: "in between", 4: "rather similar", 5: "very similar" };

const effectOf = <K extends Effect["of"]>(waiting: readonly Item[], of: K, fits: (effect: Extract<Effect, { of: K }>) => boolean): Extract<Effect, { of: K }> | null =>
  (waiting.findLast(({ effect }) => effect.of === of && fits(effect as Extract<Effect, { of: K }>))?.effect as Extract<Effect, { of: K }> | undefined) ?? null;

/** My rating of a pair as it will stand once all that waits has been sent. */
export function ratingBy(anchor: string, view: Pick<NeighbourView, "example" | "mine">, waiting: readonly Item[]): NeighbourRating | null {
  const last = effectOf(waiting, "similarity", (effect) => effect.anchor === anchor && effect.train === view.example.id);
  if (last) return last.says;
  const says = view.mine?.feedback.says;
  return says?.kind === "neighbour_rating" ? says : null;
}

/** My label of an example as it will stand once all that waits has been sent. */
export function labelBy(example: string, stored: Opinion | null, waiting: readonly Item[]): Relabel | null {
  const last = effectOf(waiting, "label", (effect) => effect.example === example);
  if (last) return last.says;
  const says = stored?.feedback.says;
  return says?.kind === "relabel" ? says : null;
}

export const labelText = (says: Relabel): string => (says.label === null ? "to be left out of the training" : `‘${says.label}’`);

/** The pair to go on with: the next that I have not rated, then one before it; none: this anchor is done. */
export function nextPair(view: Pick<AnchorView, "helpful">, after: number, rated: (one: NeighbourView) => boolean): NeighbourView | null {
  const at = view.helpful.findIndex((one) => one.place === after);
  const inTurn = [...view.helpful.slice(at + 1), ...view.helpful.slice(0, Math.max(0, at))];
  return inTurn.find((one) => !rated(one)) ?? null;
}

/** What people's ratings of a training example come to: the mean of mine and of those I may see. */
export function meanSimilarity(mine: NeighbourRating | null, others: readonly Opinion[]): number | null {
  const given = others.flatMap(({ feedback: { says }, stale }) => (says.kind === "neighbour_rating" && !stale ? [says.similar] : []));
  if (mine) given.push(mine.similar);
  return given.length ? given.reduce((sum, one) => sum + one, 0) / given.length : null;
}

export const copiesFor = (similar: number, perPoint: number): number => Math.round(similar * perPoint);

/** How many copies an answer will make. */
export function copiesText(mine: NeighbourRating | null, others: readonly Opinion[], perPoint: number): string {
  if (!mine) return `An answer makes ${plural(perPoint, "copy", "copies")} of the training example per point, to train on: from ${count(perPoint)} to ${count(5 * perPoint)}.`;
  const mean = meanSimilarity(mine, others)!;
  const own = copiesFor(mine.similar, perPoint);
  if (mean === mine.similar) return `Your answer makes ${plural(own, "copy", "copies")} of the training example to train on: ${mine.similar} × ${perPoint}.`;
  return `Together with what others said (mean ${mean.toFixed(1)}) this makes ${plural(copiesFor(mean, perPoint), "copy", "copies")} of the training example; your answer alone would make ${count(own)}.`;
}

// -- copies

export const DOUBTFUL = 0.5; // below this a check rather thinks that the label is lost

export function keptText(kept: number | null | undefined): string {
  if (kept === null || kept === undefined) return "label not checked";
  return `${kept < DOUBTFUL ? "label may be lost" : "label kept"}: ${Math.round(kept * 100)} %`;
}

/** What somebody was writing, kept on the device: data, and data can be anything. */
export function storedCopy(raw: string | null): { text: string; pair: string | null } | null {
  try {
    const found: unknown = JSON.parse(raw ?? "null");
    if (typeof found !== "object" || found === null) return null;
    const { text, pair } = found as Record<string, unknown>;
    return typeof text === "string" ? { text, pair: typeof pair === "string" ? pair : null } : null;
  } catch {
    return null;
  }
}

export const sameText = (view: Pick<CopyView, "copy">, draft: { text: string; pair: string | null }): boolean => view.copy.text === draft.text && (view.copy.pair ?? null) === draft.pair;

// -- jobs

const isOpen = (job: Job): boolean => job.state === "queued" || job.state === "running";
const placesOf = (job: Job): number[] | null => {
  const places = (job.options as { places?: unknown }).places;
  return Array.isArray(places) ? (places as number[]) : null;
};

/** The newest job of a kind that waits or is at work. */
export const openJob = (jobs: readonly Job[], project: string, kind: string): Job | null => jobs.find((job) => job.kind === kind && job.project === project && isOpen(job)) ?? null;

/** The newest one that makes copies of this training example, be it of this one only. */
export const copyJob = (jobs: readonly Job[], project: string, place: number): Job | null =>
  jobs.find((job) => job.kind === "copies" && job.project === project && isOpen(job) && (placesOf(job)?.includes(place) ?? true)) ?? null;

// -- how copies are made

export interface Copying {
  method: string;
  options: Options;
  copies_per_point: number;
  check: NonNullable<NewCopies["check"]>;
}

export const usualCopying = (offer: Pick<NeighbourOffer, "augmentations" | "copies_per_point">): Copying => ({
  method: firstUsable(offer.augmentations, "synonyms"), options: {}, copies_per_point: offer.copies_per_point, check: "model",
});

export const askedCopies = (how: Copying, places: number[] | null): Partial<NewCopies> => ({
  method: how.method, options: Object.keys(how.options).length ? how.options : null, copies_per_point: how.copies_per_point, check: how.check, places,
});
