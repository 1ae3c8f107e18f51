/** The tree of revisions as lines to draw: who comes from whom. Pure functions. */
import type { Job, RevisionView, Revisions } from "./types";

export interface Branch {
  view: RevisionView;
  depth: number;
  parent: string | null; // name of the revision that it comes from
  lines: boolean[]; // for each level above: whether its line goes on below
  last: boolean; // of its parent's children
}

/** Depth first, oldest first; a revision whose parent is gone stands at the root. */
export function treeOf(items: readonly RevisionView[]): Branch[] {
  const byId = new Map(items.map((one) => [one.revision.id, one]));
  const children = new Map<string | null, RevisionView[]>();
  for (const one of items) {
    const parent = one.revision.parent !== null && byId.has(one.revision.parent) && one.revision.parent !== one.revision.id ? one.revision.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), one]);
  }
  const branches: Branch[] = [];
  const walk = (id: string | null, depth: number, lines: boolean[]): void => {
    const own = children.get(id) ?? [];
    children.delete(id); // a circle, which nobody makes on purpose, ends here
    for (const [n, view] of own.entries()) {
      const last = n === own.length - 1;
      branches.push({ view, depth, parent: id === null ? null : (byId.get(id)?.name ?? null), lines, last });
      walk(view.revision.id, depth + 1, depth === 0 ? [] : [...lines, !last]);
    }
  };
  walk(null, 0, []);
  const drawn = new Set(branches.map((one) => one.view.name));
  for (const view of items) if (!drawn.has(view.name)) branches.push({ view, depth: 0, parent: null, lines: [], last: true });
  return branches;
}

export const compared = (all: Revisions, before: string, after: string): boolean => all.reports.some(([one, other]) => one === before && other === after);

/** Two chosen revisions as before and after: the older one first. */
export function pairOf(items: readonly RevisionView[], chosen: readonly string[]): [string, string] | null {
  const [before, after] = items.filter((one) => chosen.includes(one.name)).map((one) => one.name);
  return before !== undefined && after !== undefined && chosen.length === 2 ? [before, after] : null;
}

/** Which pair a finished job is about: a fix that proposed a revision, or a comparison. */
export function pairOfJob(job: Pick<Job, "result">): { before: string; after: string } | null {
  const result: unknown = job.result;
  if (typeof result !== "object" || result === null) return null;
  const { before, after } = result as Record<string, unknown>;
  return typeof before === "string" && typeof after === "string" ? { before, after } : null;
}
