import { mount } from "@vue/test-utils";
import { describe, expect, it, test } from "vitest";

import { questionOfAnswer } from "../src/answers";
import { bestOf, bestText, bugLookOf, bugQueryOf, clearness, columnKey, conditionText, countsText, curvesFigure, diffTexts, drawEvidence, evidenceText, inOrder, matrixOf, measuresOf, MOST_CURVES, movedText, numberText, rangeText, screenOf, showingOf, sightingText, storedVerdict, summaryOf, textsOf, tookText, usualCurves, verdictBy, verdictLacks, warningsOf } from "../src/bugs";
import { SERIES } from "../src/figures";
import { entryOn, saying } from "../src/judging";
import type { Item } from "../src/outbox";
import AuditChanges from "../src/parts/AuditChanges.vue";
import CheckRuns from "../src/parts/CheckRuns.vue";
import EvidenceList from "../src/parts/EvidenceList.vue";
import FindingCard from "../src/parts/FindingCard.vue";
import MethodChooser from "../src/parts/MethodChooser.vue";
import SightingTable from "../src/parts/SightingTable.vue";
import VerdictForm from "../src/parts/VerdictForm.vue";
import VerdictResults from "../src/parts/VerdictResults.vue";
import type { AuditChange, AuditRow, Finding, FindingView, Lab, LayerCurve, Method, Opinion, PlantedBug, Sighting, Verdict, VerdictSummary } from "../src/types";
import { warningMark } from "../src/warnings";

const HOSTILE = "<img src=x onerror=alert(1)>";
const links = { stubs: { RouterLink: { props: ["to"], template: "<a><slot /></a>" } } };

const finding = (changed: Partial<Finding> = {}): Finding =>
  ({
    check: { family: "checks", name: "shortcut_words", options: [], seed: null }, title: "The word ‘imax’ decides", severity: "high", says: "Without it the label changes.",
    evidence: [{ what: "texts that change", value: 0.6, usual: 0.05, low: 0.5, high: 0.7, n: 120 }], examples: ["e1", "e9"], words: ["imax"], next: "Lower it.", screen: "words", limits: "Only single words.", revision: "r", variants: [], ...changed,
  }) as unknown as Finding;
const viewOf = (changed: Partial<Finding> = {}, id = "f1"): FindingView => ({ id, finding: finding(changed), places: { e1: 4, e9: 7 } });
const sighting = (bug: string, method: string, value: number, changed: Partial<Sighting> = {}): Sighting => ({ bug, method, by: "attribution", measure: "detection", value, error: 0.01, random: 0.5, n: 100, sees: value > 0.8, ...changed });
const bug = (name: string, changed: Partial<PlantedBug> = {}): PlantedBug => ({ name, kind: "data", recipe: null, says: "A word was planted.", proof: "Accuracy on the cue alone.", took: 0.97, usual: 0.5, ...changed });
const lab: Lab = {
  bugs: [bug("spurious_word"), bug("reinitialised", { kind: "model", took: null, usual: null }), bug("clean", { kind: "control" }), bug("never measured")],
  sightings: [
    sighting("spurious_word", "saliency", 0.98), sighting("spurious_word", "random", 0.51), sighting("reinitialised", "saliency", 0.4, { sees: false }), sighting("clean", "random", 0.5, { sees: true }),
    sighting("spurious_word", "energy", 0.7, { by: "detector", random: 0.48 }), sighting("spurious_word", "saliency", 0.2, { measure: "rank correlation", random: 0, sees: true }),
  ],
  curves: [], warnings: [["guided_backprop", "does not depend on the model"]], examples: [["spurious_word", ["e1"]]], notes: [], revision: "r", recipe: null, at: null, texts: [],
};

describe("the address", () => {
  it("reads back what it wrote", () => {
    const queries: Record<string, string>[] = [{}, { show: "lab", measure: "top overlap", bug: "spurious_word", method: "lime" }, { audit: "abc", against: "def" }, { show: "verdicts", method: "none", revision: "r0" }];
    for (const query of queries) expect(bugQueryOf(bugLookOf(query))).toEqual(query);
  });
  it("what it does not know is as if it were not there", () => {
    expect(bugLookOf({ show: "constructor", measure: "__proto__", audit: ["", "x"] })).toEqual({ show: "audit", audit: null, against: null, revision: null, measure: "detection", bug: null, method: null });
  });
});

describe("findings", () => {
  it("the severest come first, among equals as the audit has them", () => {
    const given = (["low", "high", "medium", "high"] as const).map((severity, n) => ({ severity, n }));
    expect(inOrder(given).map(({ n }) => n)).toEqual([1, 3, 2, 0]);
  });
  it("are counted in a sentence that says whether the audit is at its end", () => {
    const row = { high: 2, medium: 0, low: 1 };
    expect(countsText(row)).toBe("2 of high, 1 of low severity");
    expect(summaryOf(row, [{ state: "done" }, { state: "left out" }])).toBe("3 findings: 2 of high, 1 of low severity. 1 check left out.");
    expect(summaryOf({ high: 0, medium: 0, low: 0 }, [{ state: "done" }, { state: "waiting" }])).toBe("Nothing was found so far. 1 check has not run yet.");
  });
  it("lead on to the screen that does something about them", () => {
    expect(screenOf(finding(), "p", 4)).toMatchObject({ text: "Go to Words", to: { name: "words", query: { word: "imax" } }, manager: false });
    expect(screenOf(finding({ screen: "flips" }), "p", 4)).toMatchObject({ to: { name: "flips", params: { project: "p", place: 4 } } });
    expect(screenOf(finding({ screen: "examples" }), "p", null)).toMatchObject({ to: { name: "examples", query: { contains: "imax", correct: "any" } } });
    expect(screenOf(finding({ screen: "fix" }), "p", 4)?.manager).toBe(true);
    expect(screenOf(finding({ screen: null }), "p", 4)).toBeNull();
  });
  it("tell whether they got better or worse", () => {
    expect([movedText("high", "low"), movedText("low", "high"), movedText("low", "low")]).toEqual(["worse: was of low severity", "better: was of high severity", ""]);
  });
});

describe("evidence", () => {
  it.each([
    [0.1234, "0.12"], [1, "1"], [-0.5, "−0.50"], [12.34, "12.3"], [123.4, "123"], [12345, "12,345"], [0.001, "0"], [-0.001, "0"], [100, "100"],
  ])("%d is written %s", (value, text) => expect(numberText(value)).toBe(text));
  it("tells the interval, what is usual, and of how many texts", () => {
    expect(evidenceText(finding().evidence[0]!)).toBe("0.60 (0.50 to 0.70) · usual 0.05 · 120 texts");
    expect(evidenceText({ what: "", value: 3, usual: null, low: null, high: null, n: 0 })).toBe("3");
  });
  it("shares lie on a line from 0 to 1, other numbers on one as long as they need", () => {
    expect(drawEvidence({ what: "", value: 0.6, usual: 0.05, low: 0.5, high: 0.7, n: 1 })).toEqual({ zero: 0, value: 60, low: 50, high: 70, usual: 5 });
    expect(drawEvidence({ what: "", value: -2, usual: null, low: null, high: 2, n: 1 })).toEqual({ zero: 50, value: 0, low: null, high: 100, usual: null });
    expect(drawEvidence({ what: "", value: -0.5, usual: 0.5, low: null, high: null, n: 1 })).toMatchObject({ zero: 50, value: 25, usual: 75 });
    expect(drawEvidence({ what: "", value: 0, usual: null, low: null, high: null, n: 1 })).toMatchObject({ zero: 0, value: 0 });
  });
});

describe("what was changed in a text", () => {
  const told = (before: string, after: string): string => diffTexts(before, after).map(({ kind, text }) => (kind === "old" ? `[-${text}-]` : kind === "new" ? `[+${text}+]` : text)).join("");
  it.each([
    ["A good film.", "A bad film.", "A [-good-][+bad+] film."],
    ["A film", "A film", "A film"],
    ["", "new", "[+new+]"],
    ["It is good", "It is not good", "It is [+not +]good"],
    ["a b c d e", "a x c y e", "a [-b-][+x+] c [-d-][+y+] e"],
  ])("%j → %j", (before, after, expected) => expect(told(before, after)).toBe(expected));
  it("nothing is lost, however long the texts are", () => {
    const words = (mark: string): string => Array.from({ length: 900 }, (_, n) => `${mark}${n}`).join(" ");
    const bits = diffTexts(`same ${words("a")} end`, `same ${words("b")} end`);
    expect(bits.map(({ kind }) => kind)).toEqual(["same", "old", "new", "same"]);
    expect(bits.filter(({ kind }) => kind !== "new").map(({ text }) => text).join("")).toBe(`same ${words("a")} end`);
  });
  it("what would turn the text around is left out, control signs become visible", () => {
    expect(told("a", "\u202eb\u0007")).toBe("[-a-][+b␇+]");
  });
});

describe("the matrix", () => {
  const matrix = matrixOf(lab, "detection");
  it("has bugs down and methods across, in groups; what was not measured this way is not there", () => {
    expect(matrix.rows.map(({ bug: { name } }) => name)).toEqual(["spurious_word", "reinitialised", "clean"]);
    expect(matrix.groups.map(({ by, methods }) => [by, methods])).toEqual([["attribution", ["saliency", "random"]], ["detector", ["energy"]]]);
    expect(matrix.rows[0]!.cells.get(columnKey("attribution", "saliency"))!.value).toBe(0.98);
    expect(matrix.rows[1]!.cells.has(columnKey("detector", "energy"))).toBe(false);
    expect(measuresOf(lab)).toEqual(["detection", "rank correlation"]);
  });
  it("random's number stands beside, as a range where it is not one", () => {
    expect(matrix.rows.map(({ random }) => random)).toEqual(["0.48–0.50", "0.50", "0.50"]);
    expect(rangeText([])).toBe("–");
  });
  it("the colour says how clearly a bug is seen, whichever way the measure runs", () => {
    expect(clearness({ measure: "detection", value: 0.75, random: 0.5 })).toBe(0.5);
    expect(clearness({ measure: "detection", value: 0.2, random: 0.5 })).toBe(0);
    expect(clearness({ measure: "rank correlation", value: 0.2, random: 0 })).toBeCloseTo(0.8);
    expect(clearness({ measure: "rank correlation", value: -0.4, random: 0 })).toBe(1);
    expect(clearness({ measure: "mass on the cue", value: 0.5, random: 1 })).toBe(0);
  });
  it("who sees most is counted without the control and without scores at random", () => {
    expect(bestOf(matrix, "attribution")).toEqual([{ method: "saliency", sees: 1, of: 2 }]);
    expect(bestText([{ method: "lime", sees: 3, of: 4 }, { method: "lrp", sees: 0, of: 1 }])).toBe("By this measure lime sees most: 3 of 4 bugs. The least: lrp, 0 of 1 bug.");
    expect(bestText([{ method: "lime", sees: 1, of: 4 }, { method: "lrp", sees: 1, of: 4 }])).toBe("By this measure all explanations see as many: 1 of 4 bugs.");
    expect(bestText([])).toBe("");
  });
  it("a cell is told in full; so is the proof that a bug took", () => {
    expect(sightingText(lab.sightings[0]!)).toBe("saliency, spurious word: detection 0.98 ±\u00a00.01 n\u00a0100, random 0.50, sees it");
    expect(tookText(lab.bugs[0]!)).toBe("0.97, without it 0.50");
    expect(tookText(lab.bugs[1]!)).toBe("");
    expect(showingOf(lab, "spurious_word")).toEqual(["e1"]);
    expect(showingOf(lab, "constructor")).toEqual([]);
  });
  it("planted texts have the scores of the method that is looked at; who scores no words has none", () => {
    const example = { id: "e1", text: "zeta is dull" };
    const spans = [{ start: 0, end: 4 }, { start: 5, end: 7 }, { start: 8, end: 12 }];
    const text = { bug: "spurious_word", example, label: "positive", words: ["zeta", "is", "dull"], spans, scores: [["saliency", [0.9, 0, 0.1]], ["lime", [0.5, 0, -0.7]]] };
    const told = { revision: "abc", texts: [text] } as unknown as Lab;
    const [strength] = textsOf(told, "spurious_word", "saliency");
    expect([strength!.attribution!.scores, strength!.attribution!.terms!.signed, strength!.scale]).toEqual([[0.9, 0, 0.1], false, 0.9]);
    const [both] = textsOf(told, "spurious_word", "lime");
    expect([both!.attribution!.terms!.signed, both!.scale]).toEqual([true, 0.7]);
    expect(textsOf(told, "spurious_word", "energy")).toEqual([{ example, attribution: null, scale: 0 }]);
    expect(textsOf(told, "clean", "lime")).toEqual([]);
  });
  const table = (changed: object = {}) => mount(SightingTable, { props: { matrix, warned: warningsOf(lab), errors: false, bug: null, method: null, ...changed }, attachTo: document.body });
  it("one cell is a stop of Tab, arrows go on past empty cells, and a press opens", async () => {
    const wrapper = table();
    const buttons = wrapper.findAll("button.sighting");
    expect(buttons.filter((one) => one.attributes("tabindex") === "0")).toHaveLength(1);
    await buttons[0]!.trigger("keydown", { key: "ArrowDown" });
    await wrapper.vm.$nextTick();
    expect(document.activeElement?.getAttribute("aria-label")).toContain("reinitialised");
    await wrapper.get("[data-cell='1-0']").trigger("keydown", { key: "ArrowRight" }); // nothing else was measured there
    expect(document.activeElement?.getAttribute("data-cell")).toBe("1-0");
    await buttons[1]!.trigger("click");
    expect(wrapper.emitted("pick")).toEqual([["spurious_word", "random"]]);
    wrapper.unmount();
  });
  it("signs stand beside the numbers; standard errors come when asked for", () => {
    expect(table().get("[data-cell='0-0']").text()).toBe("0.98✓");
    expect(table().get("[data-cell='1-0']").text()).toBe("0.40✗");
    expect(table({ errors: true }).get("[data-cell='0-0']").text()).toContain("±\u00a00.01");
  });
  it("a method that is warned of is marked, and names are texts", () => {
    const odd = { ...lab, bugs: [bug(HOSTILE)], sightings: [sighting(HOSTILE, "guided_backprop", 0.6)] };
    const wrapper = table({ matrix: matrixOf(odd, "detection") });
    expect(wrapper.get("th.method").text()).toContain("does not depend on the model");
    expect(wrapper.find("img").exists()).toBe(false);
    expect(wrapper.get("th.bug").text()).toContain(HOSTILE);
  });
});

describe("curves over layers", () => {
  const curve = (method: string, ...correlations: (number | null)[]): LayerCurve => ({ method, parts: correlations.map((_, n) => (n ? `layer ${n}` : "head")), correlations, errors: correlations.map(() => 0.02), cascading: true });
  it("those warned of are drawn first, then those that change least, and not too many", () => {
    const many = Array.from({ length: 9 }, (_, n) => curve(`m${n}`, 0.9 - n / 10));
    expect(usualCurves([...many, curve("warned", 0)], new Map([["warned", "why"]]))).toEqual(["warned", "m0", "m1", "m2", "m3", "m4"]);
    expect(usualCurves(many, new Map())).toHaveLength(MOST_CURVES);
  });
  it("the table and the summary have the numbers, also where there is no order left", () => {
    const figure = curvesFigure([curve("saliency", 0.8, null), curve("lime", 0.5, -0.25)], new Map([["lime", "why"]]), true);
    expect(figure.head).toEqual(["Drawn anew down to", "saliency", "lime ⚠"]);
    expect(figure.rows).toEqual([["head", "0.80 ± 0.02", "0.50 ± 0.02"], ["layer 1", "–", "−0.25 ± 0.02"]]);
    expect(figure.summary).toContain("saliency –; lime ⚠ −0.25");
  });
  it("names reach the chart without being markup or keys of objects", () => {
    const figure = curvesFigure([curve("__proto__", 0.8), curve("{a|b}", 0.1)], new Map(), true);
    const option = figure.option({ text: "", muted: "", line: "", accent: "", surface: "", series: SERIES.light }) as { series: { name: string }[]; tooltip: { formatter: (at: object) => string } };
    expect(option.series.map(({ name }) => name)).toEqual(["0", "1"]);
    expect(option.tooltip.formatter({ dataIndex: 0, seriesIndex: 1 })).toBe("❴a∣b❵\nhead: 0.10");
  });
});

describe("verdicts", () => {
  const says = (changed: Partial<Verdict> = {}): Verdict => ({ kind: "verdict", model: "r1", deploy: 2, reason: "labels_wrong", method: "lime", explanation_first: false, note: "", ...changed });
  const opinion = (one: Verdict): Opinion => ({ feedback: { id: "f", author: "ann", says: one }, stale: null }) as unknown as Opinion;
  test("one question for each revision, explanation and order", () => {
    const all = [says(), says({ model: "r0" }), says({ method: null }), says({ explanation_first: true })].map(questionOfAnswer);
    expect(new Set(all).size).toBe(4);
    expect(questionOfAnswer(says({ deploy: 5, reason: "other", note: "x" }))).toBe(all[0]);
  });
  test("what waits counts as said, and the next answer expects it", () => {
    const question = questionOfAnswer(says());
    const put = saying(says({ deploy: 4 }), { project: "p", place: null, revision: "r1", text_hash: null, seconds: 1 }, [opinion(says())], []);
    const item = { ...put, key: "k", order: "1" } as Item;
    expect(put).toMatchObject({ expects: { id: "f" }, effect: { of: "verdict", question } });
    expect(verdictBy(question, opinion(says()), [])?.deploy).toBe(2);
    expect(verdictBy(question, opinion(says()), [item])?.deploy).toBe(4);
    expect(verdictBy("another", null, [item])).toBeNull();
    expect(entryOn(question, null, [item])).toEqual({ madeBy: "k" });
  });
  test("nothing is saved before both questions are answered, and another reason is told", () => {
    const lacks = [{ deploy: null, reason: null, note: "" }, { deploy: 3, reason: null, note: "" }, { deploy: 3, reason: "other", note: " " }, { deploy: 3, reason: "other", note: "slow" }] as const;
    expect(lacks.map(verdictLacks).map(Boolean)).toEqual([true, true, true, false]);
  });
  test("what was kept on the device can be anything", () => {
    expect(storedVerdict('{"deploy":4,"reason":"other","note":"x"}')).toEqual({ deploy: 4, reason: "other", note: "x" });
    for (const raw of [null, "", "7", "[", '{"deploy":9,"reason":"constructor","note":3}']) expect(storedVerdict(raw)).toEqual({ deploy: null, reason: null, note: "" });
  });
  test("conditions are named", () => {
    expect([conditionText(null, false), conditionText("integrated_gradients", true)]).toEqual(["no explanation", "integrated gradients, explanation first"]);
  });
  test("five buttons say what they mean, and nothing is chosen beforehand", async () => {
    const wrapper = mount(VerdictForm, { props: { draft: { deploy: null, reason: null, note: "" }, saved: false, lacking: true } });
    expect(wrapper.findAll(".rung").map((one) => [one.text(), one.attributes("aria-pressed")])[0]).toEqual(["1definitely not", "false"]);
    expect(wrapper.findAll("input:checked")).toHaveLength(0);
    expect(wrapper.get("[role=status]").text()).toBe("Say first whether you would deploy it.");
    await wrapper.findAll(".rung")[4]!.trigger("click");
    await wrapper.findAll("input[type=radio]")[2]!.setValue(true);
    expect(wrapper.emitted("change")).toEqual([[{ deploy: 5 }], [{ reason: "unexpected_focus" }]]);
  });
  test("results are told by condition, with reasons; blind ones are said to be mine only", () => {
    const condition = { revision: "abc", name: "r1", method: "lime", explanation_first: true, counts: [1, 0, 0, 3, 0], people: 4, median: 4, low: 3.25, high: 4, reasons: [{ reason: "labels_wrong", people: 1, share: 0.25 }, { reason: "expected_focus", people: 3, share: 0.75 }] };
    const summary = { own: true, conditions: [condition], people: 4, agreement: null, said: [] } as unknown as VerdictSummary;
    const wrapper = mount(VerdictResults, { props: { summary } });
    expect(wrapper.findAll("tbody .answer").map((one) => one.text())).toEqual(["1", "0", "0", "3", "0"]);
    expect(wrapper.findAll("tbody .reason").map((one) => one.text())).toEqual(["25 %1", "0 %0", "0 %0", "75 %3", "0 %0"]);
    expect(wrapper.get("tbody th").text()).toContain("lime, explanation first");
    expect(wrapper.text()).toContain("these are your own verdicts");
  });
});

describe("parts", () => {
  const card = (changed: Partial<Finding> = {}, manages = false) => mount(FindingCard, { props: { project: "p", view: viewOf(changed), manages, secret: false, blurred: false }, global: links });
  it("a finding says how bad by word and by sign, where to look, what to do, and what it cannot show", () => {
    const wrapper = card();
    expect(wrapper.get(".severity").text()).toBe("‼high severity");
    expect(wrapper.findAll(".place").map((one) => one.text())).toEqual(["Example 5", "Example 8"]);
    expect(wrapper.text()).toContain("Lower it.");
    expect(wrapper.text()).toContain("Go to Words");
    expect(wrapper.findAll("summary").map((one) => one.text())).toEqual(["What this cannot show"]);
  });
  it("what only a manager can do is no link for others", () => {
    expect(card({ screen: "fix" }).text()).toContain("A manager can do this.");
    expect(card({ screen: "fix" }, true).text()).toContain("Go to Fix");
  });
  it("hostile texts stay texts, wherever they come from", () => {
    const wrapper = card({ title: HOSTILE, says: HOSTILE, words: [HOSTILE], next: HOSTILE, limits: HOSTILE, evidence: [{ what: HOSTILE, value: 1e300, usual: null, low: null, high: null, n: 0 }] });
    expect(wrapper.find("img").exists()).toBe(false);
    expect(wrapper.get("h3").text()).toBe(HOSTILE);
  });
  it("an example that is no longer there has no link", () => {
    expect(card({ examples: ["constructor", "e1"] }).findAll(".place")).toHaveLength(1);
  });
  it("every number of the evidence is written, not only drawn", () => {
    expect(mount(EvidenceList, { props: { evidence: finding().evidence } }).text()).toContain("0.60 (0.50 to 0.70) · usual 0.05 · 120 texts");
  });
  it("checks say what came of them or why they were left out", () => {
    const check = { family: "checks", name: "x", options: [], seed: null };
    const checks = [{ check, title: "A", state: "done", says: "", findings: 2, seconds: 1.25 }, { check, title: "B", state: "done", says: "All is well.", findings: 0, seconds: null }, { check, title: "C", state: "left out", says: "Needs labels.", findings: 0, seconds: null }, { check, title: "D", state: "waiting", says: "", findings: 0, seconds: null }];
    const wrapper = mount(CheckRuns, { props: { checks: checks as never } });
    expect(wrapper.findAll("li").map((one) => one.text())).toEqual(["!A2 findings · 1.3 s", "✓Bnothing foundAll is well.", "–Cleft outNeeds labels.", "…Dstill to run"]);
  });
  it("two audits are compared: new, still there and how it moved, gone", () => {
    const row = (name: string): AuditRow => ({ id: name, name, revision: name, at: "2026-01-01T10:00:00Z" }) as unknown as AuditRow;
    const change: AuditChange = { before: row("r0"), after: row("r1"), gone: [viewOf({ title: "Leak" }, "a")], new: [], stayed: [{ before: viewOf({}, "b"), after: viewOf({ severity: "low" }, "c") }], unknown: [] };
    const wrapper = mount(AuditChanges, { props: { change } });
    expect(wrapper.findAll("h3").map((one) => one.text())).toEqual(["+ New (0)", "= Still there (1)", "✓ Gone (1)"]);
    expect(wrapper.text()).toContain("better: was of high severity");
    expect(wrapper.text()).toContain("Nothing new was found.");
  });
  it("a method that does not depend on the model is marked where it is offered", () => {
    const method = (name: string, warning: string): Method => ({ name, summary: "", needs: [], paper: null, random: false, options: [], usable: true, unusable: "", warning });
    const methods = [method("guided_backprop", "does not depend on the model"), method("lime", "")];
    const wrapper = mount(MethodChooser, { props: { methods, labels: [], place: 0, total: 3, mayAll: false, busy: false, first: "guided_backprop" } });
    expect(wrapper.findAll("#method-name option").map((one) => one.text())).toEqual(["guided backprop ⚠ does not depend on the model", "lime"]);
    expect(wrapper.get(".note.warn").text()).toContain("guided backprop: does not depend on the model");
    expect(warningMark({ usable: false, warning: "x" })).toBe(" (not with this model)");
  });
});
