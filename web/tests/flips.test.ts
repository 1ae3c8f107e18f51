import { describe, expect, it } from "vitest";

import { questionOfAnswer } from "../src/answers";
import {
  around, best, changeBits, changeText, chartOption, chartSummary, choiceOf, diffBits, draftOf, drawnDot, flipLookOf, flipQueryOf, foundBy, generators, mainSentence, maskOf,
  mostEdits, openQuestion, outcome, ratingOf, riskiest, riskParts, sameRating, searchOf, shownSentences, soughtLabel, startWith, stepRows, storedDraft, usualMask, wordsAt,
} from "../src/flips";
import { saying } from "../src/judging";
import type { Counterfactual, Edit, FlipDesk, FlipDot, FlipView, Job, Prediction, Risk } from "../src/types";

const said = (...probabilities: number[]): Prediction => ({ labels: ["negative", "positive", "mixed"].slice(0, probabilities.length), probabilities }) as unknown as Prediction;

/** A desk for a text whose words are parted by blanks; a pair is one more text. */
function deskOf(text: string, { sentences = [[...text.split(" ").keys()]], rationale = [] as number[], pair = null as string | null, weights = [] as number[] } = {}): FlipDesk {
  const spans: { start: number; end: number; part: "text" | "pair" }[] = [];
  for (const [part, whole] of [["text", text], ["pair", pair]] as const) {
    let start = 0;
    for (const word of whole?.split(" ") ?? []) {
      spans.push({ start, end: start + [...word].length, part });
      start += [...word].length + 1;
    }
  }
  return {
    place: 0, example: { id: "e", text, pair }, spans, words: [...text.split(" "), ...(pair?.split(" ") ?? [])],
    sentences: sentences.map((words, n) => ({ words, part: "text", rationale: words.filter((one) => rationale.includes(one)), weight: weights[n] ?? 0 })), flips: [],
  } as unknown as FlipDesk;
}
const edit = (position: number, old: string, fresh: string): Edit => ({ position, old, new: fresh });
const told = (bits: readonly { kind: string; text: string }[]): string => bits.map(({ kind, text }) => (kind === "old" ? `[-${text}-]` : kind === "new" ? `[+${text}+]` : text)).join("");

function viewOf(flip: Partial<Counterfactual>, flips = true): FlipView {
  return { id: "a".repeat(16), flips, flip: { edits: [], steps: [], before: said(0.2, 0.8), after: said(0.7, 0.3), target: null, ...flip } } as unknown as FlipView;
}

describe("the address", () => {
  it("holds the sentence, the generator and the flip, and all examples are listed unless it says otherwise", () => {
    const look = flipLookOf({ sentence: "2", method: "hotflip", flip: "0123456789abcdef", contains: "good" });
    expect(look).toEqual({ filter: { contains: "good" }, sort: "order", sentence: 2, method: "hotflip", flip: "0123456789abcdef", all: false, revision: null });
    expect(flipQueryOf(look)).toEqual({ sentence: "2", method: "hotflip", flip: "0123456789abcdef", contains: "good" });
  });
  it("reads back what it wrote", () => {
    const queries: Record<string, string>[] = [{}, { correct: "true" }, { correct: "false", sort: "least_confident" }, { show: "all", revision: "r0" }];
    for (const query of queries) expect(flipQueryOf(flipLookOf(query))).toEqual(query);
  });
  it("ignores what nobody can have meant", () => {
    expect(flipLookOf({ sentence: "-1", flip: "../../etc", show: "none" })).toMatchObject({ sentence: null, flip: null, all: false });
  });
});

describe("sentences", () => {
  const desk = deskOf("a b c d e f", { sentences: [[0, 1], [2, 3], [4, 5]], rationale: [2, 4, 5], weights: [0.1, 0.6, 0.3] });
  it("those with words of the rationale are shown, the weightiest first, and that is the main one", () => {
    expect(mainSentence(desk.sentences)).toBe(1);
    expect(mainSentence([{ ...desk.sentences[0]!, weight: 0.9 }, ...desk.sentences.slice(1)])).toBe(1);
    expect(shownSentences(desk.sentences, 2, false)).toEqual([1, 2]);
    expect(shownSentences(desk.sentences, 0, false)).toEqual([1, 2, 0]);
    expect(shownSentences(desk.sentences, 2, true)).toEqual([0, 1, 2]);
  });
  it("without a rationale all are shown in their order", () => {
    expect(shownSentences(deskOf("a b", { sentences: [[0], [1]] }).sentences, 0, false)).toEqual([0, 1]);
  });
  it("words are let be changed by rationale, sentence or text; at first by the rationale, or all where there is none", () => {
    expect(maskOf(desk, 1, "rationale")).toEqual([2]);
    expect(maskOf(desk, 1, "sentence")).toEqual([2, 3]);
    expect(maskOf(desk, 1, "text")).toEqual([0, 1, 2, 3, 4, 5]);
    expect(usualMask(desk, 1)).toEqual([2]);
    expect(usualMask(desk, 0)).toEqual([0, 1]);
    expect(choiceOf(desk, 1, new Set([3, 2]))).toBe("sentence");
    expect(choiceOf(desk, 1, new Set([0, 3]))).toBeNull();
    expect(choiceOf(desk, 1, new Set())).toBe("none");
  });
  it("an empty text has none, and that is no error", () => {
    const empty = { ...deskOf("x"), sentences: [], words: [], spans: [] };
    expect(mainSentence(empty.sentences)).toBe(0);
    expect(usualMask(empty, 0)).toEqual([]);
    expect(around(empty, [])).toEqual({ numbers: [], cutBefore: false, cutAfter: false });
  });
});

describe("changes in the text", () => {
  it("code points are counted, not what JavaScript counts", () => {
    expect(wordsAt(deskOf("😀😀 good 👍"), [0, 1, 2]).map((one) => one.gap + one.word)).toEqual(["😀😀", " good", " 👍"]);
  });
  it("what stands between words turns none of them around", () => {
    const desk = { example: { id: "e", text: "a \u202e b", pair: null }, spans: [{ start: 0, end: 1, part: "text" }, { start: 4, end: 5, part: "text" }] } as unknown as FlipDesk;
    expect(wordsAt(desk, [0, 1])[1]!.gap).toBe("  ");
  });
  it("what went is struck out, what came stands beside it, what was put in or left out is only that", () => {
    const desk = deskOf("a good film indeed");
    expect(told(diffBits(desk, [0, 1, 2, 3], [edit(1, "good", "bad")]))).toBe("a [-good-] [+bad+] film indeed");
    expect(told(diffBits(desk, [0, 1, 2, 3], [edit(1, "good", "not good")]))).toBe("a [+not+] good film indeed");
    expect(told(diffBits(desk, [0, 1, 2, 3], [edit(1, "good", "good old")]))).toBe("a good [+old+] film indeed");
    expect(told(diffBits(desk, [0, 1, 2, 3], [edit(3, "indeed", "")]))).toBe("a good film [-indeed-]");
    expect(told(diffBits(desk, [0, 1, 2, 3], [edit(2, "film", "play")], [edit(1, "good", "bad")]))).toBe("a bad [-film-] [+play+] indeed");
  });
  it("a step is shown among its neighbours, within its own text of a pair", () => {
    const desk = deskOf("a b c d e f g h", { pair: "x y z" });
    expect(around(desk, [edit(4, "e", "E")], 1)).toEqual({ numbers: [3, 4, 5], cutBefore: true, cutAfter: true });
    expect(around(desk, [edit(8, "x", "X")], 4)).toEqual({ numbers: [8, 9, 10], cutBefore: false, cutAfter: false });
    expect(told(diffBits(desk, [0, 1, 6, 7], [edit(7, "h", "H")]))).toBe("a b … g [-h-] [+H+]");
  });
  it("a change is told in words", () => {
    expect([edit(0, "good", ""), edit(0, "good", "not good"), edit(0, "good", "bad")].map(changeText)).toEqual(["leave out “good”", "put “not” before “good”", "“bad” for “good”"]);
    expect(changeBits(edit(0, "\u0000", "x"))[0]!.text).toBe("␀");
  });
});

describe("the way to a flip", () => {
  const steps = [
    { edits: [edit(1, "good", "bad")], after: said(0.4, 0.6), alternatives: [] },
    { edits: [edit(0, "a", "the")], after: said(0.45, 0.55), alternatives: [] },
    { edits: [edit(2, "film", "mess")], after: said(0.8, 0.2), alternatives: [] },
  ];
  const view = viewOf({ steps, edits: [steps[0]!.edits[0]!, steps[2]!.edits[0]!] });
  it("each step tells the probability of the label sought before and after, and whether it was needed", () => {
    expect(stepRows(view).map((row) => [row.before, row.after, row.needed, row.label])).toEqual([[0.2, 0.4, true, "positive"], [0.4, 0.45, false, "positive"], [0.45, 0.8, true, "negative"]]);
  });
  it("another word at a step goes on from the changes before it", () => {
    expect(startWith(stepRows(view), 2, edit(2, "film", "bore"))).toEqual([steps[0]!.edits[0], steps[1]!.edits[0], edit(2, "film", "bore")]);
    expect(startWith(stepRows(view), 0, edit(1, "good", "dull"))).toEqual([edit(1, "good", "dull")]);
  });
  it("of three labels, the one sought is the target or the strongest other", () => {
    const three = { before: said(0.1, 0.8, 0.1), after: said(0.2, 0.5, 0.3) };
    expect(soughtLabel(viewOf({ ...three, target: "negative" }))).toBe("negative");
    expect(soughtLabel(viewOf(three, false))).toBe("mixed");
    expect(best(three.after)).toEqual({ label: "positive", share: 0.5 });
  });
  it("no flip is a result", () => {
    expect(outcome(viewOf({ edits: [edit(0, "a", "b")] }, false), 5)).toBe("No flip within 5 changes.");
    expect(outcome(view, 5)).toBe("2 changes and the model says negative.");
    expect(mostEdits([{ name: "max_edits", default: 5 }])).toBe(5);
    expect(mostEdits([{ name: "max_edits", default: 5 }], { max_edits: 2 })).toBe(2);
  });
});

describe("ratings", () => {
  it("nothing is answered beforehand, and not applicable is an answer", () => {
    expect(openQuestion({})).toBe("plausible");
    expect(ratingOf({ plausible: 3, meaningful: null }, "f")).toBeNull();
    const rating = ratingOf({ plausible: 3, meaningful: null, agrees: 5 }, "f")!;
    expect(rating).toEqual({ kind: "flip_rating", counterfactual: "f", plausible: 3, meaningful: null, agrees: 5, label: null });
    expect(openQuestion(draftOf(rating))).toBeNull();
    expect(sameRating(rating, { ...rating })).toBe(true);
    expect(sameRating(rating, { ...rating, label: "positive" })).toBe(false);
    expect(sameRating(null, rating)).toBe(false);
  });
  it("what the device kept may be anything", () => {
    for (const raw of [null, "", "[]", "7", "null", '{"plausible": 9, "agrees": "5"}', "{"]) expect(storedDraft(raw)).toEqual({});
    expect(storedDraft('{"plausible": null, "agrees": 2, "label": "x"}')).toEqual({ plausible: null, agrees: 2, label: "x" });
  });
  it("two flips are two questions, and a rating on its way is on the screen", () => {
    const rating = ratingOf({ plausible: 3, meaningful: 3, agrees: 5 }, "f")!;
    expect(questionOfAnswer(rating)).not.toBe(questionOfAnswer({ ...rating, counterfactual: "g" }));
    const about = { project: "p", place: 0, revision: "r0", text_hash: "h", seconds: 1 };
    expect(saying(rating, about, [], [])).toMatchObject({ effect: { of: "rating", flip: "f", says: rating }, expects: { id: "" } });
  });
});

describe("searches", () => {
  const job = (more: Partial<Job>): Job => ({ id: "j", kind: "flips", project: "p", state: "running", options: { places: [3] }, result: null, ...more }) as Job;
  it("the one of this example is found again, others are not", () => {
    expect(searchOf([job({})], "p", 3)?.id).toBe("j");
    for (const other of [job({ state: "done" }), job({ options: {} }), job({ options: { places: [3, 4] } }), job({ kind: "explain" }), job({ project: "q" })]) expect(searchOf([other], "p", 3)).toBeNull();
  });
  it("tells what it found, if it did", () => {
    expect(foundBy(job({ result: { flips: ["abc"] } }))).toBe("abc");
    for (const result of [null, {}, { flips: [] }, { flips: [7] }]) expect(foundBy(job({ result }))).toBeNull();
  });
});

describe("the chart of all", () => {
  const dot = (more: Partial<FlipDot>): FlipDot => ({ id: "i", place: 0, method: "hotflip", before: "a", after: "b", probability: 0.7, edits: 2, share: 0.2, similarity: null, perplexity: null, flips: true, rated: false, ...more });
  const dots = [dot({ id: "1" }), dot({ id: "2", method: "masked_lm", similarity: 0.9, rated: true }), dot({ id: "3", flips: false, edits: 5 })];
  const ink = { text: "#1", muted: "#2", line: "#3", accent: "#4", surface: "#5", series: ["#a", "#b"] };
  it("shape tells the outcome, filling who rated, colour the generator", () => {
    const drawn = (chartOption(dots, "share")(ink) as any).series[0].data;
    expect(drawn.map((one: any) => [one.value, one.symbol, one.itemStyle.color, one.itemStyle.borderColor])).toEqual([[[0.2, 0.7], "circle", "#5", "#a"], [[0.2, 0.7], "circle", "#b", "#5"], [[0.2, 0.7], "diamond", "#5", "#a"]]);
    expect(generators(dots)).toEqual(["hotflip", "masked_lm"]);
  });
  it("a click opens the dot that was drawn, also where some are not", () => {
    expect(drawnDot(dots, "similarity", 0)?.id).toBe("2");
    expect(drawnDot(dots, "edits", 2)?.id).toBe("3");
    expect(drawnDot(dots, "edits", 9)).toBeNull();
  });
  it("is told in a sentence", () => {
    expect(chartSummary(dots, 3)).toBe("2 of 3 rewritten texts flip, with 2.0 changes on average. You have rated 1.");
    expect(chartSummary([], 0)).toBe("No text has been rewritten yet.");
    expect(chartSummary(dots, 9)).toContain("of the newest 3 of 9");
  });
});

it("an example is named once, and where all agree not at all", () => {
  const local = [["a", "ann", 3], ["a", "ben", 2], ["b", "ann", 1], ["c", "ann", 0]].map(([example, author, value]) => ({ example, author, value, n: 1 }));
  expect(riskiest({ local } as unknown as Risk, 8).map((one) => [one.example, one.author])).toEqual([["a", "ann"], ["b", "ann"]]);
  expect(riskiest({ local } as unknown as Risk, 1)).toHaveLength(1);
});

it("the risk is shown in parts where there are two or more", () => {
  const slice = (by: string, name: string) => ({ by, name, value: 1, low: null, high: null, n: 1, flips: 1, examples: 1, people: 1 });
  const risk = { slices: [slice("label", "a"), slice("label", "b"), slice("author", "ann")] } as unknown as Risk;
  expect(riskParts(risk).map((part) => [part.by, part.slices.length])).toEqual([["label", 2]]);
});
