import { beforeEach, describe, expect, it } from "vitest";

import {
  EMPTY_DRAFT,
  likelyLabel,
  mappingOf,
  planOf,
  rememberSent,
  sentEarlier,
  storedDraft,
  storeDraft,
  suggestedTitle,
} from "../src/plan";
import type { Upload } from "../src/types";

const upload = (kind: "model" | "data", n: number, name = "reviews_2024.csv.gz"): Upload => ({
  id: String(n).padStart(32, "0"),
  kind,
  name,
  size: 10,
  by: "ann",
  at: "2026-01-01T00:00:00Z",
});

describe("which label of the data is which of the model's", () => {
  it("takes the same name before one that differs in case", () => {
    expect(likelyLabel("pos", ["POS", "pos"])).toBe("pos");
    expect(likelyLabel(" Pos ", ["pos", "neg"])).toBe("pos");
  });
  it("does not choose between two that are alike", () => {
    expect(likelyLabel("Pos", ["POS", "pos"])).toBeUndefined();
    expect(likelyLabel("neutral", ["pos", "neg"])).toBeUndefined();
  });
  it("lets a choice win over what is likely, also the choice to leave a label out", () => {
    const report = { data_labels: ["pos", "neg", "__proto__", "odd"], model_labels: ["pos", "neg"] };
    const mapping = mappingOf(report, [
      ["neg", null],
      ["__proto__", "pos"],
    ]);
    expect([...mapping]).toEqual([
      ["pos", "pos"],
      ["neg", null],
      ["__proto__", "pos"],
    ]);
  });
});

describe("the plan", () => {
  it("waits for both files", () => {
    expect(planOf({ ...EMPTY_DRAFT, model: upload("model", 1) })).toBeNull();
  });
  it("sends every label under its own name, whatever the name", () => {
    const plan = planOf({
      ...EMPTY_DRAFT,
      model: upload("model", 1),
      data: upload("data", 2),
      labels: [
        ["__proto__", "pos"],
        ["constructor", null],
      ],
    });
    expect(JSON.stringify(plan!.labels)).toBe('{"__proto__":"pos","constructor":null}');
  });
  it("is called after the data until somebody finds a title", () => {
    expect(planOf({ ...EMPTY_DRAFT, model: upload("model", 1), data: upload("data", 2), title: "  " })!.title).toBe(
      "reviews 2024",
    );
    expect(suggestedTitle(".csv")).toBe("New project");
  });
});

describe("what is kept", () => {
  beforeEach(() => {
    sessionStorage.clear();
    localStorage.clear();
  });
  it("a draft survives a reload and belongs to one person", () => {
    storeDraft("ann", { ...EMPTY_DRAFT, title: "Mine" });
    expect(storedDraft("ann").title).toBe("Mine");
    expect(storedDraft("bob")).toEqual(EMPTY_DRAFT);
  });
  it("an unreadable draft is no draft", () => {
    sessionStorage.setItem("unhans.new.ann", "{");
    expect(storedDraft("ann")).toEqual(EMPTY_DRAFT);
  });
  it("the latest files of each kind are offered again, each once", () => {
    for (let n = 0; n < 9; n += 1) rememberSent("ann", upload("data", n));
    rememberSent("ann", upload("model", 50));
    rememberSent("ann", upload("data", 8));
    expect(sentEarlier("ann", "data").map((one) => Number(one.id))).toEqual([8, 7, 6, 5, 4, 3]);
    expect(sentEarlier("ann", "model")).toHaveLength(1);
  });
});
