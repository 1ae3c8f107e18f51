import { mount } from "@vue/test-utils";
import { describe, expect, it } from "vitest";

import FlipText from "../src/parts/FlipText.vue";
import RatingForm from "../src/parts/RatingForm.vue";
import RiskSummary from "../src/parts/RiskSummary.vue";
import type { FlipDesk, RiskView } from "../src/types";

const desk = {
  place: 0, example: { id: "e", text: "<b>Bad</b> film. See it", pair: null }, words: ["<b>Bad</b>", "film.", "See", "it"],
  spans: [{ start: 0, end: 10 }, { start: 11, end: 16 }, { start: 17, end: 20 }, { start: 21, end: 23 }].map((span) => ({ ...span, part: "text" })),
  sentences: [{ words: [0, 1], part: "text", rationale: [0], weight: 0.9 }, { words: [2, 3], part: "text", rationale: [], weight: 0.1 }], rationale: { chosen: [0] }, flips: [],
} as unknown as FlipDesk;

describe("the text", () => {
  const text = (mask: number[], chosen = 0) => mount(FlipText, { props: { desk, chosen, mask: new Set(mask), blurred: false }, attachTo: document.body });
  it("words of the chosen sentence are buttons that are pressed or not, and one of them is a stop of Tab", () => {
    const words = text([0]).findAll("[data-at]");
    expect(words.map((one) => [one.text(), one.attributes("aria-pressed"), one.attributes("tabindex")])).toEqual([["<b>Bad</b>", "true", "0"], ["film.", "false", "-1"]]);
    expect(words[0]!.attributes("aria-description")).toBe("in the rationale");
  });
  it("a click says which word, and the sentences without the rationale wait until they are asked for", async () => {
    const wrapper = text([0]);
    await wrapper.get("[data-at='1']").trigger("click");
    expect(wrapper.emitted("toggle")).toEqual([[1]]);
    expect(wrapper.text()).not.toContain("Sentence 2");
    await wrapper.findAll("button").find((one) => one.text() === "Show all 2 sentences")!.trigger("click");
    expect(wrapper.text()).toContain("Sentence 2");
    expect(wrapper.find("p b").exists()).toBe(false); // markup in a text is text
  });
  it("says how many words may be changed, and where", () => {
    expect(text([]).get("[role=status]").text()).toContain("No word may be changed yet");
    expect(text([0, 2]).get("[role=status]").text()).toBe("2 words may be changed, 1 of them in other sentences.");
    expect(text([0, 1, 2, 3]).get("[role=status]").text()).toBe("All 4 words of the text may be changed.");
  });
});

describe("ratings", () => {
  it("nothing is chosen beforehand, and what is open is said once somebody wants to save", () => {
    const wrapper = mount(RatingForm, { props: { draft: { plausible: null }, labels: ["a"], after: "a", missing: true, blocked: false } });
    expect(wrapper.findAll("input:checked").map((one) => one.attributes("aria-label"))).toEqual(["not applicable"]);
    expect(wrapper.findAll("[role=alert]")).toHaveLength(2);
  });
  it("the third question waits while the prediction is hidden", () => {
    const wrapper = mount(RatingForm, { props: { draft: {}, labels: ["a"], after: null, missing: false, blocked: false } });
    expect(wrapper.get("[data-question=agrees]").attributes("disabled")).toBeDefined();
    expect(wrapper.get("[data-question=plausible]").attributes("disabled")).toBeUndefined();
  });
});

it("the risk before and after a fix is told with its interval and a verdict", () => {
  const risk = { value: 1, low: 0.5, high: 1.5, n: 12, flips: 6, examples: 6, people: 2, not_applicable: 1, unknown: 0, width: 0.5, more: null, more_people: null, note: "", questions: [], slices: [], local: [] };
  const change = { before: 2, after: 1, low: -1.5, high: -0.5, shared: 4, n_before: 10, n_after: 12, revisions: ["r0", "r1"], note: "" };
  const view = { revision: "r1", own: false, flips: 6, risk, places: {}, before: { ...risk, value: 2 }, change, verdict: "better" } as unknown as RiskView;
  const wrapper = mount(RiskSummary, { props: { view, width: 0.5, addressOf: () => ({}) }, global: { stubs: { RouterLink: true } } });
  expect(wrapper.get(".note").text()).toContain("2.00 → 1.00, −1 (95 % interval −1.5 to −0.5): ✓ lower than before.");
  expect(wrapper.get(".note").classes()).toContain("good");
});
