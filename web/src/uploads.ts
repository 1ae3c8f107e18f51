/** A place for one file of a new project: empty, on its way, arrived, or failed. Pure, so that every turn can be tested. */

import type { Upload } from "./types";

export type Kind = Upload["kind"];

export type Slot =
  | { state: "empty" }
  | { state: "sending"; name: string; size: number; share: number; since: number }
  | { state: "arrived"; upload: Upload }
  | { state: "failed"; name: string; reason: string };

export type Event =
  | { type: "chosen"; name: string; size: number; at: number }
  | { type: "progress"; share: number }
  | { type: "arrived"; upload: Upload }
  | { type: "failed"; reason: string }
  | { type: "refused"; name: string; reason: string }
  | { type: "cancelled" }
  | { type: "removed" };

export const EMPTY: Slot = { state: "empty" };

/** What becomes of a slot. News of a transfer that is no longer wanted changes nothing. */
export function turn(slot: Slot, event: Event): Slot {
  switch (event.type) {
    case "chosen":
      if (slot.state === "sending") return slot;
      return { state: "sending", name: event.name, size: event.size, share: 0, since: event.at };
    case "progress":
      if (slot.state !== "sending") return slot;
      return { ...slot, share: Math.min(1, Math.max(slot.share, event.share)) };
    case "arrived":
      return slot.state === "sending" || slot.state === "empty" ? { state: "arrived", upload: event.upload } : slot;
    case "failed":
      return slot.state === "sending" ? { state: "failed", name: slot.name, reason: event.reason } : slot;
    case "refused":
      return slot.state === "sending" ? slot : { state: "failed", name: event.name, reason: event.reason };
    case "cancelled":
      return slot.state === "sending" ? EMPTY : slot;
    case "removed":
      return slot.state === "sending" ? slot : EMPTY;
  }
}

const MB = 1024 * 1024;
export const LIMITS: Record<Kind, number> = { model: 2048 * MB, data: 256 * MB };
export const ENDINGS: Record<Kind, readonly string[]> = {
  model: [".zip"],
  data: [".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet"].flatMap((ending) => [ending, `${ending}.gz`]),
};

/** Why a file cannot be what the slot is for; null where it may be. Asked before a byte is sent. */
export function refusal(kind: Kind, file: { name: string; size: number }): string | null {
  const name = file.name.toLowerCase();
  if (!ENDINGS[kind].some((ending) => name.endsWith(ending))) {
    return kind === "model"
      ? "This is not a zip file. Nothing was sent. Pack the model's folder (config.json, tokenizer files and model.safetensors) into a .zip and choose that."
      : "Data is read from .csv, .tsv, .json, .jsonl and .parquet files, also as .gz. Nothing was sent. Save the table in one of these formats.";
  }
  if (file.size === 0) return "The file is empty. Nothing was sent. Choose another one.";
  if (file.size > LIMITS[kind]) {
    return `The file has ${bytes(file.size)}, the limit is ${bytes(LIMITS[kind])}. Nothing was sent. ${
      kind === "model" ? "Leave out optimizer states and other checkpoints." : "Split it, or send the part that is to be judged."
    }`;
  }
  return null;
}

/** A size in words: 0 bytes, 12 kB, 3.4 MB. */
export function bytes(count: number): string {
  if (count < 1000) return `${count} bytes`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = count / 1024;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)} ${units[unit]}`;
}

/** Seconds until a transfer ends, from how it went so far; null before that can be told honestly. */
export function secondsLeft(slot: Slot, now: number): number | null {
  if (slot.state !== "sending" || slot.share < 0.02) return null;
  const gone = (now - slot.since) / 1000;
  return gone < 2 ? null : (gone * (1 - slot.share)) / slot.share;
}
