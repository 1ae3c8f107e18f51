import { describe, expect, it } from "vitest";

import { bytes, EMPTY, LIMITS, refusal, secondsLeft, turn, type Event, type Slot } from "../src/uploads";

const UPLOAD = { id: "a".repeat(32), kind: "data" as const, name: "a.csv", size: 10, by: "ann", at: "2026-01-01T00:00:00Z" };
const after = (...events: Event[]): Slot => events.reduce(turn, EMPTY);
const chosen: Event = { type: "chosen", name: "a.csv", size: 10, at: 0 };

describe("a slot for a file", () => {
  it("goes from empty over sending to arrived", () => {
    expect(after(chosen)).toEqual({ state: "sending", name: "a.csv", size: 10, share: 0, since: 0 });
    expect(after(chosen, { type: "progress", share: 0.5 })).toMatchObject({ share: 0.5 });
    expect(after(chosen, { type: "arrived", upload: UPLOAD })).toEqual({ state: "arrived", upload: UPLOAD });
  });
  it("never goes backwards", () => {
    expect(after(chosen, { type: "progress", share: 0.5 }, { type: "progress", share: 0.2 })).toMatchObject({ share: 0.5 });
    expect(after(chosen, { type: "progress", share: 7 })).toMatchObject({ share: 1 });
  });
  it("keeps the file that is on its way when another is dropped", () => {
    expect(after(chosen, { type: "chosen", name: "b.csv", size: 1, at: 5 })).toMatchObject({ name: "a.csv" });
    expect(after(chosen, { type: "refused", name: "b", reason: "no" })).toMatchObject({ state: "sending" });
  });
  it("hears nothing from a transfer that was stopped", () => {
    expect(after(chosen, { type: "cancelled" }, { type: "progress", share: 0.9 })).toEqual(EMPTY);
    expect(after(chosen, { type: "cancelled" }, { type: "failed", reason: "late" })).toEqual(EMPTY);
  });
  it("says why it failed and takes another file", () => {
    const failed = after(chosen, { type: "failed", reason: "no space" });
    expect(failed).toEqual({ state: "failed", name: "a.csv", reason: "no space" });
    expect(turn(failed, chosen).state).toBe("sending");
    expect(turn(failed, { type: "removed" })).toEqual(EMPTY);
  });
  it("takes a file that arrived earlier", () => {
    expect(after({ type: "arrived", upload: UPLOAD })).toEqual({ state: "arrived", upload: UPLOAD });
  });
  it("keeps a file that arrived until it is removed", () => {
    const arrived = after(chosen, { type: "arrived", upload: UPLOAD });
    expect(turn(arrived, { type: "cancelled" })).toBe(arrived);
    expect(turn(arrived, { type: "failed", reason: "late" })).toBe(arrived);
    expect(turn(arrived, { type: "removed" })).toEqual(EMPTY);
  });
});

describe("what is said before a byte is sent", () => {
  it("accepts what the server reads", () => {
    for (const name of ["a.csv", "A.CSV", "b.tsv", "c.jsonl", "d.parquet", "e.csv.gz", "f.jsonl.gz"])
      expect(refusal("data", { name, size: 1 })).toBeNull();
    expect(refusal("model", { name: "m.zip", size: 1 })).toBeNull();
  });
  it("refuses other files, empty files and files beyond the limit", () => {
    expect(refusal("data", { name: "a.xlsx", size: 1 })).toContain("Nothing was sent");
    expect(refusal("model", { name: "pytorch_model.bin", size: 1 })).toContain("zip");
    expect(refusal("data", { name: "a.csv", size: 0 })).toContain("empty");
    expect(refusal("data", { name: "a.csv", size: LIMITS.data })).toBeNull();
    expect(refusal("data", { name: "a.csv", size: LIMITS.data + 1 })).toContain("256 MB");
    expect(refusal("model", { name: "a.zip", size: LIMITS.model + 1 })).toContain("2 GB");
  });
  it("writes sizes with two figures", () => {
    expect([0, 999, 1536, 10 * 1024, 3.44 * 1024 ** 2, 2 * 1024 ** 3].map(bytes)).toEqual([
      "0 bytes",
      "999 bytes",
      "1.5 kB",
      "10 kB",
      "3.4 MB",
      "2 GB",
    ]);
  });
});

it("tells the time left only once it can", () => {
  const at = (share: number): Slot => ({ state: "sending", name: "a", size: 1, share, since: 0 });
  expect(secondsLeft(at(0.01), 60_000)).toBeNull();
  expect(secondsLeft(at(0.5), 1_000)).toBeNull();
  expect(secondsLeft(at(0.25), 10_000)).toBeCloseTo(30);
  expect(secondsLeft(EMPTY, 10_000)).toBeNull();
});
