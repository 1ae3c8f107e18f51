import { mount } from "@vue/test-utils";
import { expect, test } from "vitest";
import { nextTick } from "vue";

import { blocksOf, describe as told, directionOf, flat, hasHidden, shadeOf, shown, visibleForm } from "../src/heat";
import type { Mark } from "../src/heat";
import Highlight from "../src/parts/Highlight.vue";
import type { Attribution, Example } from "../src/types";

const example = (text: string, pair: string | null = null): Example => ({ id: "e1", text, pair, label: "hate", notes: [] });

/** Words are given as they stand in the text; spans are counted in code points, as Python does. */
function attributed(of: Example, words: string[], scores: number[], more: Partial<Attribution> = {}): Attribution {
  const spans: Attribution["spans"] = [];
  let [part, from]: ["text" | "pair", number] = ["text", 0];
  for (const word of words) {
    const find = (text: string): number => {
      const at = text.indexOf(word, Array.from(text).slice(0, from).join("").length);
      return at < 0 ? -1 : Array.from(text.slice(0, at)).length;
    };
    let start = find(part === "text" ? of.text : of.pair!);
    if (start < 0) {
      [part, from] = ["pair", 0];
      start = find(of.pair!);
    }
    from = start + Array.from(word).length;
    spans.push({ start, end: from, part });
  }
  return { example: of.id, label: "hate", words, spans, scores, recipe: { family: "attribution", name: "random", options: [] }, revision: "r0", unread: [], terms: { space: "logit", baseline: "nothing", aggregation: "", signed: true, unit: "word", warning: "", engine: "" }, ...more };
}

function draw(of: Example, attribution: Attribution, more: Record<string, unknown> = {}) {
  return mount(Highlight, { attachTo: document.body, props: { example: of, attribution, scale: 1, label: "hate", marks: new Map<number, Mark>(), scope: "here" as const, ...more } });
}

test("each word is a button: its name is the word, its description what it does and what was said about it", () => {
  const text = example("All of them lie");
  const marks = new Map<number, Mark>([
    [2, { vote: "lower", scope: "here", stale: null, sent: true }],
    [3, { vote: "raise", scope: "everywhere", stale: null, sent: true }],
  ]);
  const wrapper = draw(text, attributed(text, ["All", "of", "them", "lie"], [0.01, -0.4, 0.9, 0.1]), { marks });
  const buttons = wrapper.findAll("button.word");
  expect(buttons.map((button) => button.find("bdi").text())).toEqual(["All", "of", "them", "lie"]);
  expect(buttons.map((button) => button.attributes("aria-description"))).toEqual([
    "hardly counts, +0.01",
    "speaks against ‘hate’, medium, −0.4",
    "supports ‘hate’, strong, +0.9, marked lower here",
    "supports ‘hate’, weak, +0.1, marked raise everywhere",
  ]);
  expect(buttons.map((button) => button.text())).toEqual(["All", "of", "them✕", "lie+"]);
  expect(buttons[2]!.find(".mark").attributes("aria-hidden")).toBe("true");
  wrapper.unmount();
});

test("one word can be tabbed to, and the arrows, Home and End move on from it", async () => {
  const text = example("one two three");
  const wrapper = draw(text, attributed(text, ["one", "two", "three"], [1, 1, 1]));
  const tabs = (): string[] => wrapper.findAll("button.word").map((button) => button.attributes("tabindex")!);
  expect(tabs()).toEqual(["0", "-1", "-1"]);
  wrapper.vm.move(1); // to the group
  await nextTick();
  await nextTick();
  wrapper.vm.move(1);
  await nextTick();
  await nextTick();
  expect(tabs()).toEqual(["-1", "0", "-1"]);
  expect(document.activeElement?.textContent).toBe("two");
  await wrapper.find("button.word").trigger("keydown", { key: "End" });
  await nextTick();
  expect(tabs()).toEqual(["-1", "-1", "0"]);
  wrapper.unmount();
});

test("in text that runs from right to left the left arrow goes on", async () => {
  const text = example("שלום עולם");
  const wrapper = draw(text, attributed(text, ["שלום", "עולם"], [1, 1]));
  expect(wrapper.find(".text").attributes("dir")).toBe("rtl");
  wrapper.vm.goTo(0);
  await nextTick();
  await nextTick();
  wrapper.vm.move(-1);
  await nextTick();
  await nextTick();
  expect(document.activeElement?.textContent).toBe("עולם");
  wrapper.unmount();
});

test("what people and models wrote is text, never markup", () => {
  const payload = '<img src=x onerror=alert(1)> "><svg onload=alert(1)>';
  const text = example(payload);
  const wrapper = draw(text, attributed(text, ["<img", '"><svg'], [1, -1], { label: "<b>hate</b>" }), { label: "<script>" });
  expect(wrapper.findAll("img, svg, script, b")).toEqual([]);
  expect(wrapper.find(".text").text()).toContain("<img");
  wrapper.unmount();
});

test("a click offers the votes, and one of them is told", async () => {
  const text = example("good film");
  const wrapper = draw(text, attributed(text, ["good", "film"], [1, 0]));
  await wrapper.findAll("button.word")[0]!.trigger("click");
  const menu = wrapper.find("[role=dialog]");
  expect(menu.text()).toContain("How much should good count for hate?");
  await menu.find(".lower").trigger("click");
  expect(wrapper.emitted("vote")).toEqual([[0, "lower"]]);
  expect(wrapper.find("[role=dialog]").exists()).toBe(false);
  wrapper.unmount();
});

test("the tail that the model did not read cannot be marked", () => {
  const text = example("read this but not that");
  const wrapper = draw(text, attributed(text, ["read", "this", "but", "not", "that"], [1, 0.5, 0, 0, 0], { unread: [2, 3, 4] }));
  expect(wrapper.findAll("button.word").map((button) => button.text())).toEqual(["read", "this"]);
  expect(wrapper.find(".unread").text()).toBe("but not that");
  expect(wrapper.text()).toContain("The model read the first 2 words.");
  wrapper.unmount();
});

test("a pair is two blocks", () => {
  const pair = example("A man sleeps", "The man runs");
  const wrapper = draw(pair, attributed(pair, ["A", "man", "sleeps", "The", "man", "runs"], [1, 0, 0, 0, 0, -1]));
  expect(wrapper.findAll(".text").map((block) => block.findAll("button.word").length)).toEqual([3, 3]);
  expect(wrapper.text()).toContain("Second text");
  wrapper.unmount();
});

test.each([
  ["nothing stands out", "two words", ["two", "words"], [0.001, 0.002], "All words weigh about the same."],
  ["one word", "good", ["good"], [1], "Only one word: nothing to compare."],
])("a text in which %s says so", (_case, raw, words, scores, sentence) => {
  const text = example(raw);
  const wrapper = draw(text, attributed(text, words, scores));
  expect(wrapper.text()).toContain(sentence);
  wrapper.unmount();
});

test("a very long text is drawn in pieces", () => {
  const words = Array.from({ length: 2500 }, (_, n) => `w${n}`);
  const ends = words.map((_, n) => words.slice(0, n + 1).join(" ").length);
  const spans = words.map((word, n) => ({ start: ends[n]! - word.length, end: ends[n]!, part: "text" as const }));
  const wrapper = draw(example(words.join(" ")), { ...attributed(example(""), [], []), words, spans, scores: words.map(() => 0) });
  expect(wrapper.findAll("button.word")).toHaveLength(2000);
  expect(wrapper.text()).toContain("Show 500 more of 2,500 words");
  wrapper.unmount();
});

test("positions are code points: emoji before a word do not shift it", () => {
  const text = example("😀 love 👨‍👩‍👧 this 𝒳");
  const words = ["😀", "love", "👨‍👩‍👧", "this", "𝒳"];
  const [block] = blocksOf(text, attributed(text, words, [1, 1, 1, 1, 1]));
  expect(block!.pieces.map((piece) => piece.word)).toEqual(words);
  expect(block!.pieces.map((piece) => piece.before + piece.word).join("") + block!.after).toBe(text.text);
});

test("the scale is fixed: what lies beyond it is simply strongest, and nothing divides by nought", () => {
  expect(shadeOf(5, 1)).toEqual({ share: 1, side: "for", size: "strong" });
  expect(shadeOf(-0.5, 1)).toEqual({ share: 0.5, side: "against", size: "medium" });
  expect(shadeOf(0.5, 0)).toEqual({ share: 0, side: "none", size: "none" });
  expect(shadeOf(-0.5, 1, false).side).toBe("for");
  expect(flat([0.5, 0.5, 0.5], 1)).toBe(true);
  expect(flat([0, 0.9], 1)).toBe(false);
  expect(flat(Array.from({ length: 300_000 }, () => 0), 1)).toBe(true);
});

test("scores without a sign speak neither for nor against", () => {
  expect(told(shadeOf(0.9, 1, false), "hate", false, "0.9", null)).toBe("strong strength, 0.9");
});

test("words that look alike are one word everywhere", () => {
  expect(visibleForm("GO\u200bOD")).toBe("good");
  expect(visibleForm("a\u0301")).toBe(visibleForm("Á"));
  expect(visibleForm("Straße")).toBe("strasse");
});

test("hidden and control characters are seen", () => {
  expect(hasHidden("go\u200bod")).toBe(true);
  expect(hasHidden("👨‍👩‍👧‍👦")).toBe(false);
  expect(shown("a\u0000b\u001b")).toBe("a␀b␛");
  expect(directionOf("123 שלום")).toBe("rtl");
  expect(directionOf("abc שלום")).toBe("ltr");
});
