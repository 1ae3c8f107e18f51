import { expect, test } from "vitest";

import { lookOf, narrowing, queryOf } from "../src/filter";
import type { Look } from "../src/filter";

const looks: [string, Look][] = [
  ["the default", { filter: { correct: true }, sort: "order", set: null, view: "map" }],
  ["all predictions", { filter: {}, sort: "order", set: null, view: "map" }],
  ["wrong ones", { filter: { correct: false }, sort: "least_confident", set: "s1", view: "bars" }],
  ["everything", {
    filter: {
      correct: true, label: "__proto__", predicted: "a&b=c#?/", min_confidence: 0, max_confidence: 0.5, contains: "ünï 😀", word: "+", min_words: 0, max_words: 12,
      split: "null", group: "constructor", state: "flagged", disagreement: true, noted: false,
    },
    sort: "most_confident", set: "x y", view: "plain",
  }],
];

test.each(looks)("an address says what is looked at: %s", (_name, look) => {
  const written = new URLSearchParams(queryOf(look) as Record<string, string>).toString();
  const read = Object.fromEntries(new URLSearchParams(written));
  expect(lookOf(read)).toEqual(look);
});

test("without a word in the address only right predictions are shown", () => {
  expect(lookOf({}).filter).toEqual({ correct: true });
  expect(queryOf(lookOf({}))).toEqual({});
});

test("nonsense in the address is left out", () => {
  const look = lookOf({ min_confidence: "2", max_confidence: "x", min_words: "1.5", max_words: "-1", state: "gone", sort: "worst", view: "3d", noted: "maybe", label: "x".repeat(201), __proto__x: "1" });
  expect(look).toEqual({ filter: { correct: true }, sort: "order", set: null, view: "map" });
});

test("a field that comes twice counts once", () => {
  expect(lookOf({ label: ["a", "b"] }).filter.label).toBe("a");
});

test("the number of filters leaves the default out", () => {
  expect(narrowing({ correct: true })).toBe(0);
  expect(narrowing({})).toBe(1);
  expect(narrowing({ correct: true, word: "x", noted: false })).toBe(2);
});
