/** From labels in doubt to what is shown and asked: the address, the signs as bars, what to judge next. */
import type { LocationQuery, LocationQueryRaw } from "vue-router";

import type { DoubtPage, DoubtView } from "./types";
import { count, plainName } from "./words";

// -- what the address says

export interface DoubtLook {
  label: string | null; // only those with this given label
  waiting: boolean; // only those that I have not judged
  revision: string | null; // that looked; null: the one in use
  from: string | null; // cursor of the page
  page: number;
}

const first = (query: LocationQuery, name: string): string => {
  const value = query[name];
  return ((Array.isArray(value) ? value[0] : value) ?? "").slice(0, 500);
};

export function doubtLookOf(query: LocationQuery): DoubtLook {
  const from = first(query, "from") || null;
  const page = first(query, "page");
  return {
    label: first(query, "label") || null,
    waiting: first(query, "waiting") === "true",
    revision: first(query, "revision") || null,
    from,
    page: from && /^\d{1,5}$/.test(page) ? Math.max(2, Number(page)) : from ? 2 : 1,
  };
}

export function doubtQueryOf(look: DoubtLook): LocationQueryRaw {
  const query: LocationQueryRaw = {};
  if (look.label) query.label = look.label;
  if (look.waiting) query.waiting = "true";
  if (look.revision) query.revision = look.revision;
  if (look.from) Object.assign(query, { from: look.from, page: String(look.page) });
  return query;
}

// -- signs

export interface SignBar {
  name: string;
  share: number; // 0 to 1
  told: string;
}

const known = new Map([
  ["self_influence", "learned by heart"],
  ["low_confidence", "model unsure of it"],
  ["neighbour_disagreement", "alike texts differ"],
  ["confident_learning", "a model without it differs"],
  ["contradiction", "same text, other label"],
]);
/** A sign in plain words; one that this page does not know yet goes by its name. */
export const signName = (name: string): string => known.get(name) ?? plainName(name);

export const signBars = (signs: readonly (readonly [string, number] | readonly unknown[])[]): SignBar[] =>
  signs.map(([name, value]) => {
    const share = Math.min(1, Math.max(0, Number(value) || 0));
    return { name: signName(String(name)), share, told: share.toFixed(2) };
  });

// -- going on

/** What to judge next on this page: the next that waits, then one before it. */
export function nextDoubt(items: readonly DoubtView[], after: number, judged: (one: DoubtView) => boolean): DoubtView | null {
  const at = items.findIndex((one) => one.place === after);
  return [...items.slice(at + 1), ...items.slice(0, Math.max(0, at))].find((one) => !judged(one)) ?? null;
}

export const ranksText = (page: DoubtPage): string => {
  const [one, last] = [page.items[0], page.items.at(-1)];
  return one && last ? `ranks ${count(one.rank)} to ${count(last.rank)}` : "";
};
