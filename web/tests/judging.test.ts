import { expect, test } from "vitest";

import { questionOf } from "../src/answers";
import { entryOn, marksOf, saying, stateOf, votesOf } from "../src/judging";
import type { Item } from "../src/outbox";
import type { Attribution, ExampleView, Opinion, WordVote } from "../src/types";

const vote = (position: number | null, wanted: "raise" | "lower", more: Partial<WordVote> = {}): WordVote => ({ kind: "word_vote", word: "Good", label: "positive", vote: wanted, example: position === null ? null : "e1", position, ...more });
const opinion = (says: WordVote, id = "f1"): Opinion => ({ feedback: { id, says, author: "anna", at: "2026-01-01T00:00:00Z", revision: "r0" }, stale: null });
const about = { project: "films", place: 0, revision: "r0", text_hash: "h", seconds: 3.14159 };
const waiting = (says: WordVote, opinions: Opinion[] = [], key = "k1"): Item => ({ ...saying(says, about, opinions, []), key, order: "1" }) as Item;
const attribution = { words: ["A", "good", "good", "film"] } as unknown as Attribution;

test("what waits to be sent is already on the screen", () => {
  const votes = votesOf([opinion(vote(1, "raise"))], [waiting(vote(1, "lower"))]);
  expect(marksOf("e1", attribution, "positive", votes).get(1)).toEqual({ vote: "lower", scope: "here", stale: null, sent: false });
});

test("a vote everywhere marks all words that look alike; one here goes before it", () => {
  const votes = votesOf([opinion(vote(null, "lower", { word: "GOOD" })), opinion(vote(2, "raise"), "f2")], []);
  const marks = marksOf("e1", attribution, "positive", votes);
  expect([...marks].map(([at, mark]) => [at, mark.vote, mark.scope])).toEqual([[1, "lower", "everywhere"], [2, "raise", "here"]]);
});

test("votes about another label are not marked", () => {
  expect(marksOf("e1", attribution, "negative", votesOf([opinion(vote(1, "raise"))], [])).size).toBe(0);
});

test("labels may be called anything", () => {
  for (const label of ["__proto__", "constructor", "null", "😀"]) {
    const votes = votesOf([opinion(vote(1, "raise", { label }))], []);
    expect(marksOf("e1", attribution, label, votes).get(1)?.vote).toBe("raise");
  }
});

test("an answer expects what stands: nothing, what is stored, or what is on its way", () => {
  const question = questionOf(vote(1, "raise"));
  expect(entryOn(question, null, [])).toEqual({ id: "" });
  expect(entryOn(question, opinion(vote(1, "raise")).feedback, [])).toEqual({ id: "f1" });
  expect(entryOn(question, null, [waiting(vote(1, "raise"))])).toEqual({ madeBy: "k1" });
});

test("votes at two places of a text are two questions, everywhere is one", () => {
  expect(questionOf(vote(1, "raise"))).not.toBe(questionOf(vote(2, "raise")));
  expect(questionOf(vote(null, "raise", { word: "GOOD" }))).toBe(questionOf(vote(null, "lower", { word: "good" })));
});

test("times are rounded to what can be told", () => {
  expect(saying(vote(1, "raise"), about, [], [])).toMatchObject({ seconds: 3.142, text_hash: "h", effect: { of: "vote", vote: "raise" } });
});

test("an example with a vote is begun, and done once that is said", () => {
  const view = { example: { id: "e1" }, state: "pending" } as ExampleView;
  expect(stateOf(view, [])).toBe("pending");
  expect(stateOf(view, [waiting(vote(1, "raise"))])).toBe("draft");
  const review = { ...saying({ kind: "review", example: "e1", state: "done", note: "" }, about, [], []), key: "k2", order: "2" } as Item;
  expect(stateOf(view, [waiting(vote(1, "raise")), review])).toBe("done");
});
