/** Filters and addresses: what is looked at can be sent to a colleague. */
import type { LocationQuery, LocationQueryRaw } from "vue-router";

import type { Filter, Sort, State } from "./types";

/** What the address of the examples says besides the place. */
export interface Look {
  filter: Filter;
  sort: Sort;
  set: string | null; // explanation set
  view: "map" | "bars" | "plain";
}

export const STATES: State[] = ["pending", "draft", "done", "skipped", "flagged"];
export const SORTS: Sort[] = ["order", "least_confident", "most_confident"];
const VIEWS: Look["view"][] = ["map", "bars", "plain"];

const texts = ["label", "predicted", "contains", "word", "split", "group"] as const;
const numbers = ["min_confidence", "max_confidence", "min_words", "max_words"] as const;
const flags = ["disagreement", "noted"] as const;

/** Without a word in the address only right predictions are shown: feedback is about the given label. */
export const DEFAULT_FILTER: Filter = { correct: true };

function one(query: LocationQuery, name: string): string | null {
  const value = query[name];
  const first = Array.isArray(value) ? value[0] : value;
  return first ? first : null;
}

const among = <T extends string>(known: readonly T[], value: string | null): T | null => known.find((each) => each === value) ?? null;

export function lookOf(query: LocationQuery): Look {
  const filter: Filter = {};
  for (const name of texts) {
    const value = one(query, name);
    if (value !== null && value.length <= 200) filter[name] = value;
  }
  for (const name of numbers) {
    const value = one(query, name);
    const number = Number(value);
    const most = name.endsWith("confidence") ? 1 : 1_000_000;
    if (value !== null && number >= 0 && number <= most && (most === 1 || Number.isInteger(number))) filter[name] = number;
  }
  for (const name of flags) {
    const value = one(query, name);
    if (value === "true" || value === "false") filter[name] = value === "true";
  }
  const correct = one(query, "correct");
  if (correct !== "any") filter.correct = correct !== "false";
  const state = among(STATES, one(query, "state"));
  if (state) filter.state = state;
  return {
    filter,
    sort: among(SORTS, one(query, "sort")) ?? "order",
    set: one(query, "set"),
    view: among(VIEWS, one(query, "view")) ?? "map",
  };
}

export function queryOf(look: Look): LocationQueryRaw {
  const query: LocationQueryRaw = {};
  for (const name of [...texts, ...numbers, ...flags, "state"] as const) {
    const value = look.filter[name];
    if (value !== undefined && value !== null && value !== "") query[name] = String(value);
  }
  if (look.filter.correct === false) query.correct = "false";
  if (look.filter.correct === undefined || look.filter.correct === null) query.correct = "any";
  if (look.sort !== "order") query.sort = look.sort;
  if (look.set) query.set = look.set;
  if (look.view !== "map") query.view = look.view;
  return query;
}

/** How many fields narrow, besides the default. */
export function narrowing(filter: Filter): number {
  const others = Object.entries(filter).filter(([name, value]) => name !== "correct" && value !== undefined && value !== null);
  return others.length + (filter.correct === true ? 0 : 1);
}
