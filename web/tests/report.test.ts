import { mount } from "@vue/test-utils";
import { beforeAll, describe, expect, it } from "vitest";

import ChangeList from "../src/parts/ChangeList.vue";
import DecisionBar from "../src/parts/DecisionBar.vue";
import EffectTable from "../src/parts/EffectTable.vue";
import IntervalPlot from "../src/parts/IntervalPlot.vue";
import MeasureTable from "../src/parts/MeasureTable.vue";
import PublishDialog from "../src/parts/PublishDialog.vue";
import RivalTable from "../src/parts/RivalTable.vue";
import { tradeOffFigure } from "../src/figures";
import {
  caveats, chanceText, changeText, differing, heard, intervalText, keepFirst, reachOf, recipeText, rowsOf, scaleOf, strongest, sweepOf, valueText, verdictOf, worseOf, worseSentence,
} from "../src/report";
import type { Attribution, Change, Measure, Recipe, Report, WordEffect } from "../src/types";

const measure = (changed: Partial<Measure> = {}): Measure => ({ name: "accuracy", data: "films", before: 0.9, after: 0.85, low: -0.08, high: -0.02, better: "higher", slice: "", n: 100, p: 0.004, runs: [], ...changed });
const recipe = (name: string, options: Recipe["options"] = [], seed: number | null = 0): Recipe => ({ family: "fixes", name, options, seed });
const report = (changed: Partial<Report> = {}): Report => ({ before: "a", after: "b", measures: [], expectations: [], fixed: [], broken: [], n_fixed: 0, n_broken: 0, words: [], moved: null, rivals: [], notes: [], recipe: null, method: null, at: null, ...changed });
const same = measure({ low: -0.01, high: 0.02, after: 0.905 });

beforeAll(() => {
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close ??= () => undefined;
});

describe("which way a measure went", () => {
  it.each([
    [{ low: 0.01, high: 0.05 }, "better"],
    [{ low: -0.05, high: -0.01 }, "worse"],
    [{ low: -0.05, high: 0.01 }, "same"],
    [{ low: 0, high: 0.05 }, "same"],
    [{ low: null, high: null }, "same"],
    [{ low: 0.01, high: 0.05, better: "lower" }, "worse"],
    [{ low: -0.05, high: -0.01, better: "lower" }, "better"],
  ] as [Partial<Measure>, string][])("%j is %s", (changed, verdict) => expect(verdictOf(measure(changed))).toBe(verdict));
  it("a fall is told with its size and its uncertainty", () => {
    expect(worseSentence(measure())).toBe("Accuracy on films fell from 90.0 % to 85.0 %: −5.0 points (95 % interval −8.0 to −2.0).");
    expect(worseSentence(measure({ name: "calibration_error", better: "lower", before: 0.03, after: 0.06, low: 0.01, high: 0.05, slice: "label hate" }))).toBe(
      "Calibration error on films, label hate, rose from 3.0 % to 6.0 %: +3.0 points (95 % interval +1.0 to +5.0).",
    );
  });
  it("whole sets come before their parts, large falls before small ones", () => {
    const part = measure({ slice: "group a", after: 0.5 });
    const small = measure({ data: "books", after: 0.88 });
    const made = measure({ data: "books · without voted words", after: 0.1 });
    expect(worseOf([made, part, small, same, measure()])).toEqual([measure(), small, part, made]);
  });
  it("numbers are written in their own unit, and a change of nothing has no sign", () => {
    expect(changeText(measure({ before: 0.9, after: 0.9 }))).toBe("0 points");
    expect(changeText(measure({ before: null }))).toBe("–");
    expect(valueText(measure({ before: 3, after: 12.3456 }), 12.3456)).toBe("12.3");
    expect(changeText(measure({ before: 3, after: 12.3456 }))).toBe("+9.35");
    expect(intervalText(measure({ low: null, high: null }))).toBe("");
    expect([chanceText(0.00001), chanceText(0.0312), chanceText(null)]).toEqual(["< 0.001", "0.031", "–"]);
  });
});

describe("which button is the obvious one", () => {
  it("is to publish when nothing fell", () => expect(keepFirst(report({ measures: [same] }), true)).toBe(false));
  it("is to keep when anything fell, were it a part of a set", () => expect(keepFirst(report({ measures: [same, measure({ slice: "group a" })] }), true)).toBe(true));
  it("is to keep when an expectation fails", () => expect(keepFirst(report({ expectations: [{ text: "broken <= 5", holds: false, value: 7, says: "" }] }), true)).toBe(true));
  it("is to keep when the report is about another model than the one in use", () => expect(keepFirst(report(), false)).toBe(true));
  it.each([[true, "Keep the current model"], [false, "Publish the new one"]])("has the focus and the colour (%s)", (keepFirst, text) => {
    const wrapper = mount(DecisionBar, { props: { current: "r0", fresh: "r1", keepFirst, why: "", busy: false }, attachTo: document.body });
    expect(document.activeElement?.textContent).toContain(text);
    expect(wrapper.findAll(".primary").map((one) => one.element)).toEqual([document.activeElement]);
    wrapper.unmount();
  });
  it("in the dialog is to keep, and Escape keeps", async () => {
    const wrapper = mount(PublishDialog, { props: { name: "r1", current: "r0", worse: ["<b>worse</b>"], busy: false } });
    expect(wrapper.get(".primary").text()).toBe("Keep the current model");
    expect(wrapper.find("b").exists()).toBe(false);
    await wrapper.get("dialog").trigger("cancel");
    expect(wrapper.emitted("keep")).toHaveLength(1);
    expect(wrapper.emitted("publish")).toBeUndefined();
  });
});

describe("the table of measures", () => {
  const all = [measure(), measure({ name: "macro_f1" }), measure({ slice: "label a" }), measure({ data: "books" }), measure({ slice: "label b", low: -0.1, high: 0.1 }), measure({ slice: "label a", name: "macro_f1", low: 0.1, high: 0.2 })];
  it("is in order of sets, with parts gathered", () => {
    const [films, books] = rowsOf(all);
    expect([films!.whole.length, films!.slices.map((one) => [one.slice, one.rows.length]), films!.worse]).toEqual([2, [["label a", 2], ["label b", 1]], 1]);
    expect([books!.data, books!.slices]).toEqual(["books", []]);
  });
  it("folds parts until they are asked for", async () => {
    const wrapper = mount(MeasureTable, { props: { measures: all } });
    expect(wrapper.findAll("tr.part")).toHaveLength(0);
    expect(wrapper.text()).toContain("1 measure worse in parts");
    const button = wrapper.get("button");
    expect(button.attributes("aria-expanded")).toBe("false");
    await button.trigger("click");
    expect(wrapper.findAll("tr.part")).toHaveLength(3);
    expect(button.attributes("aria-expanded")).toBe("true");
  });
  it("says every verdict in a word", () => expect(mount(MeasureTable, { props: { measures: [measure(), same] } }).findAll("td .tag").map((one) => one.text())).toEqual(["▼worse", "=no clear change"]));
  it("shows markup in names as text", () => {
    const wrapper = mount(MeasureTable, { props: { measures: [measure({ data: "<img src=x>", slice: "" })] } });
    expect(wrapper.find("img").exists()).toBe(false);
    expect(wrapper.text()).toContain("<img src=x>");
  });
  it("draws intervals on one scale, by the whole sets; what goes beyond is cut off and says so", () => {
    expect(reachOf([measure(), measure({ slice: "a", low: -0.9, high: 0.9 })])).toBeCloseTo(0.088);
    expect(reachOf([])).toBeCloseTo(0.022);
    const wrapper = mount(IntervalPlot, { props: { change: 0.5, low: -0.5, high: 0.9, reach: 0.1, verdict: "same" as const } });
    expect(wrapper.findAll(".cut")).toHaveLength(2);
    expect(Number(wrapper.get("circle").attributes("cx"))).toBeLessThanOrEqual(120);
  });
});

const attribution = (scores: number[], words = scores.map((_, n) => `w${n}`)): Attribution => ({
  example: "e", label: "pos", words, spans: words.map((_, n) => ({ start: n * 3, end: n * 3 + 2, part: "text" as const })), scores, recipe: recipe("lime"), revision: "a", unread: [], terms: { space: "logit", baseline: "none", aggregation: "sum", signed: true, unit: "word", warning: "", engine: "" }, errors: null, stability: null, asked: null,
});

describe("texts that changed", () => {
  it("share one colour scale: the 99th percentile of all scores shown", () => {
    const many = Array.from({ length: 199 }, (_, n) => (n % 2 ? 0.1 : -0.1));
    expect(scaleOf([attribution(many), null, attribution([50])])).toBe(0.1);
    expect(scaleOf([null])).toBe(0);
    expect(scaleOf([attribution([-3])])).toBe(3);
  });
  it("name the strongest words for those who do not see colours", () => {
    expect(strongest(attribution([0.1, -0.5, 0, 0.3]), 2).map((one) => one.word)).toEqual(["w1", "w3"]);
  });
  it("are shown as text, with both predictions", async () => {
    const prediction = (probabilities: number[]) => ({ example: "e", labels: ["neg", "pos"], probabilities, revision: "a", unread: [] });
    const example = { id: "e", text: "<b>bad</b> film", pair: null, label: "pos", highlights: null, group: null, split: null, notes: [] };
    const change: Change = { example, data: "films", before: prediction([0.2, 0.8]), after: prediction([0.9, 0.1]), why_before: null, why_after: null };
    const wrapper = mount(ChangeList, { props: { kind: "broken" as const, changes: Array.from({ length: 7 }, (_, n) => ({ ...change, example: { ...example, id: `e${n}` } })), total: 30, scale: 1, blurred: false } });
    expect(wrapper.find("p b").exists()).toBe(false);
    expect(wrapper.findAll("li")).toHaveLength(5);
    expect(wrapper.get("li").text()).toMatch(/Before✓posright80 % sure.*After✗negwrong90 % sure/s);
    await wrapper.get("button").trigger("click");
    expect(wrapper.findAll("li")).toHaveLength(7);
    expect(wrapper.text()).toContain("23 more are broken");
  });
});

describe("votes and rivals", () => {
  const effect = (vote: "raise" | "lower", before: number, after: number): WordEffect => ({ word: "imax", label: "pos", vote, example: null, before, after, score_before: 1, score_after: 0.1, texts: 3 });
  it("a vote is heard when the word moved its way", () => {
    expect([effect("lower", 0.4, 0.1), effect("lower", 0.1, 0.4), effect("raise", 0.1, 0.4), effect("raise", 0.4, 0.4)].map(heard)).toEqual([true, false, true, false]);
  });
  it("those that were not heard come first", () => {
    const wrapper = mount(EffectTable, { props: { effects: [effect("lower", 0.4, 0.1), effect("lower", 0.1, 0.4)] } });
    expect(wrapper.findAll("td .tag").map((one) => one.text())).toEqual(["✗not heard", "✓heard"]);
    expect(wrapper.text()).toContain("1 of 2 votes were heard");
  });
  const swept = report({
    recipe: recipe("er", [["strength", 0.3], ["steps", 8]]), measures: [measure({ after: 0.9 }), measure({ data: "books", after: 0.7 }), measure({ slice: "x" })],
    rivals: [
      { recipe: recipe("er", [["strength", 1]]), measures: [measure({ after: 0.8 }), measure({ data: "books", after: 0.9 })], note: "" },
      { recipe: recipe("er", [["strength", 0.1]]), measures: [measure({ after: 0.91 })], note: "" },
      { recipe: recipe("word_dropout"), measures: [measure({ after: 0.89 })], note: "cheap" },
    ],
  });
  it("a recipe is said in words, strength first", () => {
    expect(recipeText(swept.recipe!)).toBe("er · strength 0.3 · steps 8 · seed 0");
    expect(recipeText(recipe("word_dropout", [["a", true], ["b", false], ["c", null], ["strength", 2]], null), new Set(["a", "b", "c"]))).toBe("word dropout · a · no b");
  });
  it("rivals are told apart by what differs", () => {
    expect(differing([recipe("a", [["strength", 1], ["epochs", 3]]), recipe("a", [["strength", 2], ["epochs", 3]]), recipe("b", [["rate", 1]])])).toEqual(new Set(["strength"]));
  });
  it("notes say what the screen does not say itself", () => {
    const own = ["Accuracy on films fell by 3.1 points [-5.0, -1.2].", "Nothing that was measured got worse beyond its 95 % interval.", "1 example that was right is wrong now, and 45 that were wrong are right.", "5 more measures got better.", "The fix is better."];
    expect(caveats(report({ notes: [...own, "4 questions on which people are evenly split were left out."], rivals: [{ recipe: recipe("a"), measures: [], note: "The fix is better." }] }))).toEqual(["4 questions on which people are evenly split were left out."]);
  });
  it("the curve goes from weak to strong and leaves other fixes out", () => {
    expect(sweepOf(swept).map((one) => [one.strength, one.own])).toEqual([[0.1, false], [0.3, true], [1, false]]);
    expect(sweepOf(report({ recipe: recipe("er", [["strength", 1]]) }))).toEqual([]);
    const figure = tradeOffFigure(sweepOf(swept), "accuracy");
    expect(figure.head).toEqual(["Strength", "films", "books"]);
    expect(figure.rows).toEqual([[0.1, "91.0 %", "–"], ["0.3 (this fix)", "90.0 %", "70.0 %"], [1, "80.0 %", "90.0 %"]]);
  });
  it("the best of each set is named, not only coloured", () => {
    const wrapper = mount(RivalTable, { props: { report: swept } });
    const rows = wrapper.findAll("tbody tr");
    expect(rows).toHaveLength(4);
    expect(rows[0]!.text()).toContain("this fix");
    expect(rows.map((row) => row.findAll("td").map((cell) => cell.text().includes("best")))).toEqual([[false, false], [false, true], [true, false], [false, false]]);
  });
});
