/** A new project before it exists: what is kept over a reload, and which label of the data is which of the model's. */

import type { Columns, PlanReport, ProjectPlan, Upload } from "./types";
import type { Kind } from "./uploads";

export type Role = keyof Columns;
export type Mapping = Map<string, string | null>; // label in the data → the model's; null leaves its rows without a label

export interface Draft {
  model: Upload | null;
  data: Upload | null;
  title: string;
  columns: Columns;
  labels: [string, string | null][] | null;
  check: string | null; // ids of jobs
  create: string | null;
}

export const NO_COLUMNS: Columns = { text: null, pair: null, label: null, group: null, split: null, id: null };
export const EMPTY_DRAFT: Draft = { model: null, data: null, title: "", columns: NO_COLUMNS, labels: null, check: null, create: null };

/** What to send; null until both files are there. */
export function planOf(draft: Draft): ProjectPlan | null {
  if (!draft.model || !draft.data) return null;
  return {
    model: draft.model.id,
    data: draft.data.id,
    title: draft.title.trim() || suggestedTitle(draft.data.name),
    columns: draft.columns,
    labels: draft.labels && Object.fromEntries(draft.labels),
  };
}

/** The file's name without its endings: better than an empty field. */
export function suggestedTitle(name: string): string {
  const bare = name.replace(/\.gz$/i, "").replace(/\.[a-z0-9]{2,8}$/i, "");
  return bare.replace(/[_-]+/g, " ").trim().slice(0, 200) || "New project";
}

const folded = (label: string): string => label.normalize("NFKC").trim().toLowerCase();

/** The model's label that a label of the data most likely means: the same, or the same but for case and spaces. */
export function likelyLabel(label: string, ofModel: readonly string[]): string | undefined {
  if (ofModel.includes(label)) return label;
  const alike = ofModel.filter((one) => folded(one) === folded(label));
  return alike.length === 1 ? alike[0] : undefined;
}

/** What stands for each label of the data: what was chosen, else what is likely; those without either are missing. */
export function mappingOf(report: Pick<PlanReport, "data_labels" | "model_labels">, chosen: Draft["labels"]): Mapping {
  const picked = new Map(chosen ?? []);
  const mapping: Mapping = new Map();
  for (const label of report.data_labels) {
    const means = picked.has(label) ? picked.get(label)! : likelyLabel(label, report.model_labels);
    if (means !== undefined) mapping.set(label, means);
  }
  return mapping;
}

const draftKey = (person: string): string => `unhans.new.${person}`;
const sentKey = (person: string): string => `unhans.sent.${person}`;
const KEPT = 6;

/** The draft of this tab; an unreadable one is no draft. */
export function storedDraft(person: string): Draft {
  try {
    return { ...EMPTY_DRAFT, ...(JSON.parse(sessionStorage.getItem(draftKey(person)) ?? "{}") as Partial<Draft>) };
  } catch {
    return EMPTY_DRAFT;
  }
}

export function storeDraft(person: string, draft: Draft): void {
  sessionStorage.setItem(draftKey(person), JSON.stringify(draft));
}

/** Files that arrived earlier from this browser, newest first. */
export function sentEarlier(person: string, kind: Kind): Upload[] {
  try {
    const all = JSON.parse(localStorage.getItem(sentKey(person)) ?? "[]") as Upload[];
    return all.filter((one) => one.kind === kind);
  } catch {
    return [];
  }
}

export function rememberSent(person: string, upload: Upload): void {
  const same = [upload, ...sentEarlier(person, upload.kind).filter((one) => one.id !== upload.id)].slice(0, KEPT);
  const others = sentEarlier(person, upload.kind === "model" ? "data" : "model");
  localStorage.setItem(sentKey(person), JSON.stringify([...same, ...others]));
}
