import { mount } from "@vue/test-utils";
import { describe, expect, it } from "vitest";

import { lossFigure } from "../src/figures";
import { costText, dominant, firstFix, monotonous, nothingToLearn, parseExpectations, parseStrengths, seconds, sortVotes } from "../src/fixing";
import { compared, pairOf, pairOfJob, treeOf } from "../src/lineage";
import FeedbackSummary from "../src/parts/FeedbackSummary.vue";
import FixForm from "../src/parts/FixForm.vue";
import type { FeedbackUse, FixMethod, FixOffer, MethodOption, NewFix, PersonShare, RevisionView, VoteUse } from "../src/types";

const option = (name: string, kind: string, value: MethodOption["default"]): MethodOption => ({ name, kind, default: value, choices: [], help: "" });
const method = (name: string, changed: Partial<FixMethod> = {}): FixMethod => ({
  method: { name, summary: "", needs: [], paper: null, random: true, options: name === "word_dropout" ? [] : [option("strength", "float", 1)], usable: true, unusable: "", warning: "" },
  reads: ["word_vote"], answers: 3, seconds: 60, cheap: false, ...changed,
});
const person = (author: string, share: number, by_kind: PersonShare["by_kind"] = []): PersonShare => ({ author, answers: 10, share, by_kind });
const feedback = (changed: Partial<FeedbackUse> = {}): FeedbackUse => ({ usable: 3, votes: [], by_kind: [["word_vote", 3]], people: [person("ann", 0.7), person("ben", 0.3)], agreement: [], stale: [], undecided: 0, inherited: 0, ...changed });
const dropout = method("word_dropout", { cheap: true, seconds: 20 });
const regularisation = method("explanation_regularisation");
const offer = (changed: Partial<FixOffer> = {}): FixOffer => ({ methods: [dropout, regularisation], training: [option("epochs", "int", 3)], feedback: feedback(), train: 100, held_out: 20, expectations: ["broken <= 5"], cannot: "", ...changed });

describe("what people type", () => {
  it.each([
    ["0.1, 0.3, 1", [0.1, 0.3, 1]],
    ["1 .5;0.5  1e-2", [0.01, 0.5, 1]],
    ["", []],
    [" , ", []],
  ])("strengths: %j", (text, values) => expect(parseStrengths(text)).toEqual({ values, wrong: "" }));
  it.each(["a", "-1", "1001", "1,5x", "NaN", "Infinity", "0x10"])("is no strength: %s", (text) => {
    const { values, wrong } = parseStrengths(text);
    expect(values).toEqual([]);
    expect(wrong).toContain("is not a strength");
  });
  it("too many strengths are refused before they cost a day", () => expect(parseStrengths(Array.from({ length: 13 }, (_, n) => n).join(" ")).wrong).toContain("At most 12"));
  it("expectations: one a line, each once", () => {
    expect(parseExpectations("accuracy >= 0.9\n\n broken <= 5 \r\naccuracy >= 0.9").values).toEqual(["accuracy >= 0.9", "broken <= 5"]);
    expect(parseExpectations("x".repeat(501)).wrong).toContain("at most 500");
  });
});

describe("whose answers they are", () => {
  it("one person with more than half is named, unless there is only one", () => {
    expect(dominant([person("ann", 0.7), person("ben", 0.3)])?.author).toBe("ann");
    expect(dominant([person("ann", 0.5), person("ben", 0.5)])).toBeNull();
    expect(dominant([person("ann", 1)])).toBeNull();
  });
  it("answers that are nearly always the same are pointed at, if there are enough of them", () => {
    expect(monotonous(person("ann", 1, [["word_vote", 20, "lower", 1], ["relabel", 3, "pos", 1], ["x", 20, "a", 0.5]])).map(([kind]) => kind)).toEqual(["word_vote"]);
  });
  it("somebody can be left out, and markup in names is text", async () => {
    const names = ["<img src=x>", "ben"];
    const wrapper = mount(FeedbackSummary, { props: { feedback: feedback({ people: [person(names[0]!, 0.7), person("ben", 0.3)] }), everybody: names, chosen: names, busy: false } });
    expect(wrapper.find("img").exists()).toBe(false);
    expect(wrapper.text()).toContain("More than half of the answers (70 %)");
    await wrapper.findAll("input")[0]!.setValue(false);
    expect(wrapper.emitted("choose")).toEqual([[["ben"]]]);
  });
  it("votes on words come before labels, those that touch most first", () => {
    const vote = (kind: VoteUse["kind"], word: string | null, texts: number): VoteUse => ({ kind, word, label: "a", vote: null, place: null, people: 1, against: 0, ruled: false, inherited: false, texts });
    expect(sortVotes([vote("relabel", null, 9), vote("word_vote", "b", 1), vote("word_vote", "c", 5), vote("word_vote", "a", 1)]).map((one) => one.word)).toEqual(["c", "a", "b", null]);
  });
});

describe("what it costs", () => {
  const plan = { fix: "explanation_regularisation", rivals: ["word_dropout"], strengths: [0.1, 1], seeds: 3, training: {} };
  const { methods, training } = offer();
  it("each seed, strength and rival is a training", () => {
    expect(seconds(plan, methods, training)).toBe(60 * 5 + 20);
    expect(seconds({ ...plan, training: { epochs: 6 } }, methods, training)).toBe(2 * (60 * 5 + 20));
    expect(costText(plan, methods, training)).toBe("About 5 minutes on this machine, for 6 trainings and the check afterwards.");
  });
  it("nobody guesses without anything to go by", () => {
    expect(costText({ ...plan, rivals: [], strengths: [], seeds: 1 }, [method("explanation_regularisation", { seconds: null })], [])).toBe("How long one training will take here cannot be told before the first has begun.");
  });
});

describe("what is offered", () => {
  it("a real fix before a baseline, and only where there is something to learn", () => {
    expect(firstFix([dropout, regularisation])).toBe("explanation_regularisation");
    expect(firstFix([dropout, method("explanation_regularisation", { answers: 0 })])).toBe("word_dropout");
    expect(firstFix([])).toBe("");
  });
  it("nothing to learn from is told apart from answers that cannot be used", () => {
    const none = [method("a", { answers: 0 })];
    expect(nothingToLearn(feedback(), [dropout])).toBe("");
    expect(nothingToLearn(feedback({ usable: 0 }), none)).toContain("Nobody has said");
    expect(nothingToLearn(feedback({ usable: 0, undecided: 2 }), none)).toContain("none of them can be used");
  });
  const form = (changed: Partial<FixOffer> = {}) => mount(FixForm, { props: { offer: offer(changed), people: null, busy: false, blocked: "" } });
  const started = (wrapper: ReturnType<typeof form>): NewFix => wrapper.emitted("start")!.at(-1)![0] as NewFix;
  it("word dropout is measured beside another fix unless somebody says no", async () => {
    const wrapper = form();
    await wrapper.get("form").trigger("submit");
    expect(started(wrapper)).toEqual({ fix: "explanation_regularisation", options: null, training: null, people: null, rivals: ["word_dropout"], strengths: [], seeds: 1, seed: 0, expectations: ["broken <= 5"] });
    await wrapper.get("input[type=checkbox]").setValue(false);
    await wrapper.get("input[inputmode=decimal]").setValue("0.3 1");
    await wrapper.get("form").trigger("submit");
    expect(started(wrapper)).toMatchObject({ rivals: [], strengths: [0.3, 1] });
  });
  it("a baseline has no rival but others, and no strength to try", async () => {
    const wrapper = form();
    await wrapper.get('input[value="word_dropout"]').setValue(true);
    expect(wrapper.get("input[inputmode=decimal]").attributes("disabled")).toBeDefined();
    await wrapper.get("form").trigger("submit");
    expect(started(wrapper)).toMatchObject({ fix: "word_dropout", rivals: [] });
  });
  it("what cannot be read cannot be started", async () => {
    const wrapper = form();
    await wrapper.get("input[inputmode=decimal]").setValue("much");
    await wrapper.get("form").trigger("submit");
    expect(wrapper.emitted("start")).toBeUndefined();
    expect(wrapper.text()).toContain("“much” is not a strength");
  });
  it("a fix without answers says what it lacks", () => {
    expect(form({ methods: [dropout, method("relabel", { reads: ["relabel"], answers: 0 })] }).text()).toContain("Needs labels; there are none that count.");
  });
});

describe("losses", () => {
  const point = (step: number, task: number, extra: number | null) => ({ step, task, extra, run: "fix" });
  it("are drawn as two lines, or one where explanations are not trained on", () => {
    expect(lossFigure([point(1, 0.7, 0.5), point(2, 0.6, 0.1)]).summary).toBe("Up to step 2: task loss from 0.7 to 0.6; explanation loss from 0.5 to 0.1.");
    const plain = lossFigure([point(1, 0.7, null)]);
    expect(plain.head).toEqual(["Step", "Task loss"]);
    expect(lossFigure([]).summary).toContain("No step");
  });
});

describe("revisions", () => {
  const view = (name: string, parent: string | null): RevisionView => ({
    name, revision: { id: `id-${name}`, parent: parent && `id-${parent}`, recipe: { family: "fixes", name: "er", options: [], seed: 0 }, labels: [], feedback: [], folder: null, at: null },
    state: "proposed", at: "2026-01-01T00:00:00Z", size: 1, headline: [], report: null, worse: 0, problem: "",
  });
  const told = (items: RevisionView[]) => treeOf(items).map(({ view: { name }, depth, parent, lines, last }) => [name, depth, parent, lines.map(Number).join(""), last]);
  it("stand under what they come from, and lines go on where siblings follow", () => {
    expect(told([view("r0", null), view("r1", "r0"), view("r2", "r0"), view("r3", "r1"), view("r4", "r3")])).toEqual([
      ["r0", 0, null, "", true], ["r1", 1, "r0", "", false], ["r3", 2, "r1", "1", true], ["r4", 3, "r3", "10", true], ["r2", 1, "r0", "", true],
    ]);
  });
  it("are all shown, whatever their parents say", () => {
    expect(told([view("a", "gone"), view("b", "c"), view("c", "b"), view("d", "d")]).map(([name]) => name).sort()).toEqual(["a", "b", "c", "d"]);
  });
  it("are compared the older one first", () => {
    const items = [view("r0", null), view("r1", "r0"), view("r2", "r0")];
    expect(pairOf(items, ["r2", "r0"])).toEqual(["r0", "r2"]);
    expect(pairOf(items, ["r2"])).toBeNull();
    expect(pairOf(items, ["r2", "gone"])).toBeNull();
    expect(compared({ items, current: "r0", back_to: null, reports: [["r0", "r1"]] }, "r1", "r0")).toBe(false);
  });
  it("a job's result says which two, or nothing", () => {
    expect(pairOfJob({ result: { before: "r0", after: "r1", x: 1 } })).toEqual({ before: "r0", after: "r1" });
    for (const result of [null, "r1", { before: "r0" }, { before: 1, after: 2 }]) expect(pairOfJob({ result })).toBeNull();
  });
});
