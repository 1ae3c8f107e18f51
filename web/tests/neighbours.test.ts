import { describe, expect, it } from "vitest";

import { inWords, questionOfAnswer } from "../src/answers";
import { saying } from "../src/judging";
import {
  askedCopies, copiesFor, copiesText, copyJob, firstUsable, freshBits, keptText, labelBy, labelText, meanSimilarity, neighbourLookOf, neighbourQueryOf, nextPair, openJob,
  parsePlaces, ratingBy, sameText, sharedBits, sharedText, sharedWords, storedCopy, usualCopying,
} from "../src/neighbours";
import type { Item } from "../src/outbox";
import type { AnchorView, CopyView, Job, Method, NeighbourRating, NeighbourView, Opinion, Relabel } from "../src/types";

const example = (text: string, pair: string | null = null) => ({ text, pair });
const told = (bits: readonly { text: string; shared: boolean }[]): string => bits.map(({ text, shared }) => (shared ? `[${text}]` : text)).join("");
const rated = (similar: number): NeighbourRating => ({ kind: "neighbour_rating", anchor: "a", train: "t", similar });
const opinion = (says: NeighbourRating | Relabel, stale: string | null = null): Opinion => ({ feedback: { id: "f", says }, stale }) as unknown as Opinion;
const neighbour = (place: number, mine: Opinion | null = null, id = `t${place}`): NeighbourView => ({ place, example: { id, text: "" }, mine, others: [] }) as unknown as NeighbourView;

describe("the address", () => {
  it("reads back what it wrote", () => {
    const queries: Record<string, string>[] = [{}, { train: "12" }, { train: "0", side: "harmful", revision: "r0" }, { waiting: "true" }, { pick: "3,17" }];
    for (const query of queries) expect(neighbourQueryOf(neighbourLookOf(query))).toEqual(query);
  });
  it("ignores what nobody can have meant", () => {
    expect(neighbourLookOf({ train: "-1", side: "dark", pick: "a,2,../3", waiting: "perhaps" })).toEqual({ train: null, harmful: false, revision: null, waiting: false, pick: [2] });
  });
});

describe("numbers of examples", () => {
  it("are counted from 1, alone or from–to, each once and in order", () => {
    expect(parsePlaces("17, 3; #4 20-22 21", 30)).toEqual({ values: [2, 3, 16, 19, 20, 21], wrong: "" });
    expect(parsePlaces("  ", 30)).toEqual({ values: [], wrong: "" });
  });
  it("what is none, or beyond the last, is said", () => {
    expect(parsePlaces("three", 30).wrong).toContain("“three” is no number");
    expect(parsePlaces("0", 30).wrong).toBe("There is no example 0: they are numbered from 1 to 30.");
    expect(parsePlaces("29-31", 30).wrong).toContain("There is no example 31");
    expect(parsePlaces("5-3", 30).wrong).toContain("There is no example 5");
    expect(parsePlaces("1-2000", 5000).wrong).toBe("At most 1,000 examples at once.");
  });
});

describe("words in both", () => {
  it("count whatever their case and side, and each is named once", () => {
    const both = sharedWords(example("The Actor paid the lawyer.", "The lawyer paid."), example("A lawyer", "the ACTOR didn't go"));
    expect([...both.values()]).toEqual(["The", "Actor", "lawyer"]);
    expect(told(sharedBits("The actor's lawyer, the Actor!", both))).toBe("[The] actor's [lawyer], [the] [Actor]!");
    expect(sharedText(both)).toBe("3 words in both: The, Actor, lawyer.");
  });
  it("none is said too, and neither an empty text nor markup is anything special", () => {
    expect(sharedText(sharedWords(example(""), example("a")))).toBe("No word is in both.");
    expect(sharedBits("", new Map())).toEqual([]);
    expect(told(sharedBits("<b>x</b>\u202e", sharedWords(example("b"), example("b"))))).toBe("<[b]>x</[b]>");
  });
  it("a long list is cut", () => {
    const many = example(Array.from({ length: 15 }, (_, n) => `w${n}`).join(" "));
    expect(sharedText(sharedWords(many, many))).toMatch(/^15 words in both: w0, .* w11 and 3 more\.$/);
  });
  it("in a copy the new words are marked", () => {
    expect(told(freshBits("A Great film, honestly", example("A good film")))).toBe("A [Great] film, [honestly]");
  });
});

describe("ratings", () => {
  const waiting = (...effects: unknown[]): Item[] => effects.map((effect, n) => ({ key: String(n), effect }) as unknown as Item);
  it("one that waits to be sent stands before one that is stored, and so does one taken back", () => {
    const one = neighbour(1, opinion(rated(2)), "t");
    expect(ratingBy("a", one, [])?.similar).toBe(2);
    expect(ratingBy("a", one, waiting({ of: "similarity", anchor: "a", train: "t", says: rated(5) }))?.similar).toBe(5);
    expect(ratingBy("a", one, waiting({ of: "similarity", anchor: "a", train: "t", says: null }))).toBeNull();
    expect(ratingBy("b", one, waiting({ of: "similarity", anchor: "a", train: "t", says: rated(5) }))?.similar).toBe(2);
  });
  it("the same holds for labels, where dropping is an answer", () => {
    const stored = opinion({ kind: "relabel", example: "t", label: "x" });
    expect(labelBy("t", stored, [])?.label).toBe("x");
    const dropped = labelBy("t", stored, waiting({ of: "label", example: "t", says: { kind: "relabel", example: "t", label: null } }));
    expect(labelText(dropped!)).toBe("to be left out of the training");
    expect(labelBy("t", stored, waiting({ of: "label", example: "t", says: null }))).toBeNull();
  });
  it("goes on to the next that waits, then to one before", () => {
    const view = { helpful: [neighbour(1), neighbour(2), neighbour(3)] } as unknown as AnchorView;
    expect(nextPair(view, 1, () => false)?.place).toBe(2);
    expect(nextPair(view, 3, (one) => one.place === 3)?.place).toBe(1);
    expect(nextPair(view, 2, () => true)).toBeNull();
  });
  it("is put as an answer about the pair", () => {
    const about = { project: "p", place: 1, revision: "r", text_hash: "h", seconds: 1 };
    const item = saying(rated(4), about, [opinion(rated(2))], []);
    expect(item.effect).toEqual({ of: "similarity", anchor: "a", train: "t", says: rated(4) });
    expect(item).toMatchObject({ kind: "say", expects: { id: "f" }, text_hash: "h" });
    expect(questionOfAnswer(rated(1))).toBe(questionOfAnswer(rated(5)));
    expect(questionOfAnswer(rated(1))).not.toBe(questionOfAnswer({ ...rated(1), train: "u" }));
    const label = saying({ kind: "relabel", example: "t", label: null }, about, [], [{ key: "k", effect: { of: "label", example: "t", says: null } } as unknown as Item]);
    expect(label).toMatchObject({ effect: { of: "label", example: "t" }, expects: { madeBy: "k" } });
    expect([inWords(rated(4)), inWords({ kind: "relabel", example: "t", label: null })]).toEqual(["similarity 4 of 5", "no label fits"]);
  });
});

describe("copies", () => {
  it("how many an answer makes is said beforehand, and with others their mean counts", () => {
    expect(copiesFor(4, 10)).toBe(40);
    expect(copiesText(null, [], 10)).toContain("from 10 to 50");
    expect(copiesText(rated(4), [], 10)).toBe("Your answer makes 40 copies of the training example to train on: 4 × 10.");
    expect(copiesText(rated(4), [opinion(rated(1)), opinion(rated(5), "another text")], 10)).toContain("(mean 2.5) this makes 25 copies of the training example; your answer alone would make 40");
    expect(meanSimilarity(null, [])).toBeNull();
  });
  it("the check is told in words", () => {
    expect([keptText(null), keptText(0.91), keptText(0.2)]).toEqual(["label not checked", "label kept: 91 %", "label may be lost: 20 %"]);
  });
  it("what was being written is read back, whatever is stored", () => {
    expect(storedCopy(JSON.stringify({ text: "a", pair: "b" }))).toEqual({ text: "a", pair: "b" });
    for (const odd of [null, "", "{", "7", "[]", JSON.stringify({ text: 3 })]) expect(storedCopy(odd)).toBeNull();
    expect(sameText({ copy: { text: "a", pair: null } } as CopyView, { text: "a", pair: null })).toBe(true);
  });
  it("the usual way is offered if it works, or else the first that does", () => {
    const methods = [{ name: "masked_lm", usable: true }, { name: "synonyms", usable: false }] as Method[];
    expect(firstUsable(methods, "synonyms")).toBe("masked_lm");
    const how = usualCopying({ augmentations: methods, copies_per_point: 3 });
    expect(askedCopies(how, [4])).toEqual({ method: "masked_lm", options: null, copies_per_point: 3, check: "model", places: [4] });
  });
});

it("a job for all makes copies of this one too, one for others does not", () => {
  const job = (id: string, places: number[] | null, state = "running"): Job => ({ id, kind: "copies", project: "p", state, options: { places } }) as unknown as Job;
  expect(copyJob([job("a", [3]), job("b", null)], "p", 3)?.id).toBe("a");
  expect(copyJob([job("a", [4]), job("b", null)], "p", 3)?.id).toBe("b");
  expect(copyJob([job("a", [4]), job("b", null, "done")], "p", 3)).toBeNull();
  expect(openJob([job("a", null)], "p", "trace")).toBeNull();
});
