import { mount } from "@vue/test-utils";
import { describe, expect, it } from "vitest";

import { doubtLookOf, doubtQueryOf, nextDoubt, ranksText, signBars } from "../src/doubts";
import DoubtList from "../src/parts/DoubtList.vue";
import SignBars from "../src/parts/SignBars.vue";
import SimilarityForm from "../src/parts/SimilarityForm.vue";
import type { DoubtPage, DoubtView } from "../src/types";

const view = (place: number, rank = place + 1): DoubtView =>
  ({ place, rank, example: { id: `e${place}`, text: "<b>Bad</b> film" }, doubt: { label: "positive", suggested: "negative", score: 0.934, signs: [["low_confidence", 0.9]] } }) as unknown as DoubtView;

describe("the address", () => {
  it("reads back what it wrote", () => {
    const queries: Record<string, string>[] = [{}, { label: "positive", waiting: "true" }, { from: "abc", page: "3", revision: "r0" }];
    for (const query of queries) expect(doubtQueryOf(doubtLookOf(query))).toEqual(query);
  });
  it("a page without its cursor is the first", () => {
    expect(doubtLookOf({ page: "7" })).toMatchObject({ from: null, page: 1 });
    expect(doubtLookOf({ from: "abc", page: "x" })).toMatchObject({ from: "abc", page: 2 });
  });
});

it("signs are told in plain words and stay on their scale; one that is not known goes by its name", () => {
  expect(signBars([["self_influence", 0.5], ["sixth_sense", 1.4]])).toEqual([{ name: "learned by heart", share: 0.5, told: "0.50" }, { name: "sixth sense", share: 1, told: "1.00" }]);
});

it("goes on to the next that waits, then to one before", () => {
  const items = [view(4), view(9), view(2)];
  expect(nextDoubt(items, 4, () => false)?.place).toBe(9);
  expect(nextDoubt(items, 2, (one) => one.place === 4)?.place).toBe(9);
  expect(nextDoubt(items, 9, () => true)).toBeNull();
  expect(ranksText({ items } as unknown as DoubtPage)).toBe("ranks 5 to 3");
  expect(ranksText({ items: [] as DoubtView[] } as DoubtPage)).toBe("");
});

describe("parts", () => {
  const list = (secret: boolean, judged: number[] = []) =>
    mount(DoubtList, {
      props: { rows: [view(4), view(9)], place: 9, secret, blurred: false, said: (one: DoubtView) => (judged.includes(one.place) ? { kind: "relabel", example: "", label: null } : null), addressOf: () => ({}) },
      global: { stubs: { RouterLink: { template: "<a><slot /></a>" } } },
    });
  it("the ranking shows both labels, the score and what I said, and a text is a text", () => {
    const wrapper = list(false, [4]);
    expect(wrapper.findAll("li")[0]!.text()).toMatch(/positive.*negative.*0\.93.*<b>Bad<\/b> film.*you: to be left out of the training/s);
    expect(wrapper.find("b").exists()).toBe(false);
    expect(wrapper.findAll("a").map((one) => one.attributes("aria-current"))).toEqual([undefined, "true"]);
  });
  it("where predictions are hidden, the suggestion is hidden too", () => {
    expect(list(true).text()).not.toContain("negative");
  });
  it("every bar has its number beside it", () => {
    const wrapper = mount(SignBars, { props: { doubt: { score: 0.8, signs: [["low_confidence", 0.25]] } } });
    expect(wrapper.findAll("dt").map((one) => one.text())).toEqual(["all signs together", "model unsure of it"]);
    expect(wrapper.findAll(".number").map((one) => one.text())).toEqual(["0.80", "0.25"]);
  });
  it("the five answers say what they mean and how many copies they make, and one is pressed", async () => {
    const wrapper = mount(SimilarityForm, { props: { similar: 2, perPoint: 10, blocked: false } });
    const buttons = wrapper.findAll("button");
    expect(buttons.map((one) => one.attributes("aria-pressed"))).toEqual(["false", "true", "false", "false", "false"]);
    expect(buttons[4]!.findAll("span").map((one) => one.text())).toEqual(["5", "very similar", "50 copies"]);
    await buttons[4]!.trigger("click");
    expect(wrapper.emitted("rate")).toEqual([[5]]);
  });
});
