import { mount } from "@vue/test-utils";
import { beforeAll, describe, expect, it } from "vitest";

import KeyTable from "../src/parts/KeyTable.vue";
import LabelMap from "../src/parts/LabelMap.vue";
import ModalDialog from "../src/parts/ModalDialog.vue";
import Tour from "../src/parts/Tour.vue";
import UploadBox from "../src/parts/UploadBox.vue";
import { EMPTY } from "../src/uploads";

beforeAll(() => {
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
});

const named = (wrapper: ReturnType<typeof mount>, text: string) => wrapper.findAll("button").find((one) => one.text().startsWith(text))!;

describe("keys that people choose themselves", () => {
  const table = (chosen = {}) => mount(KeyTable, { props: { chosen }, attachTo: document.body });

  it("the next key pressed is the new one", async () => {
    const wrapper = table();
    await wrapper.get("#change-skip").trigger("click");
    await wrapper.get(".waiting").trigger("keydown", { key: "X" });
    expect(wrapper.emitted("change")).toEqual([[{ skip: ["x"] }]]);
  });
  it("Escape keeps the key, and neither Tab nor a modifier alone is one", async () => {
    const wrapper = table();
    await wrapper.get("#change-skip").trigger("click");
    for (const key of ["Shift", "Control", "Tab"]) await wrapper.get(".waiting").trigger("keydown", { key });
    await wrapper.get(".waiting").trigger("keydown", { key: "Escape" });
    expect(wrapper.emitted("change")).toBeUndefined();
    expect(wrapper.find(".waiting").exists()).toBe(false);
  });
  it("a key for two things is said aloud and marked at both", () => {
    const wrapper = table({ skip: ["f"] });
    expect(wrapper.get("[role=alert]").text()).toContain("means both “Skip” and “Flag for somebody else”");
    expect(wrapper.findAll(".tag.warn")).toHaveLength(2);
  });
  it("one key or all can be set back", async () => {
    const wrapper = table({ skip: ["x"], flag: ["y"] });
    await named(wrapper, "Reset the key for Skip").trigger("click");
    await named(wrapper, "Reset all keys").trigger("click");
    expect(wrapper.emitted("change")).toEqual([[{ flag: ["y"] }], [{}]]);
  });
  it("markup stored as a key is shown as text", () => {
    expect(table({ skip: ["<img src=x>"] }).find("img").exists()).toBe(false);
  });
});

describe("the tour", () => {
  it("has four steps, moves by arrows, and ends at the last button", async () => {
    const wrapper = mount(Tour, { attachTo: document.body });
    expect(document.activeElement?.getAttribute("aria-label")).toBe("Step 1 of 4: What the model leans on");
    for (const _ of [1, 2, 3, 4]) await wrapper.get("dialog").trigger("keydown", { key: "ArrowRight" });
    expect(wrapper.get("[role=group]").attributes("aria-label")).toContain("Step 4 of 4");
    await wrapper.get("dialog").trigger("keydown", { key: "ArrowLeft" });
    expect(wrapper.get("[role=group]").attributes("aria-label")).toContain("Step 3 of 4");
    await named(wrapper, "Next").trigger("click");
    expect(wrapper.emitted("close")).toBeUndefined();
    await named(wrapper, "Start").trigger("click");
    expect(wrapper.emitted("close")).toHaveLength(1);
    wrapper.unmount();
  });
  it("can be skipped at once", async () => {
    const wrapper = mount(Tour, { attachTo: document.body });
    await named(wrapper, "Skip").trigger("click");
    expect(wrapper.emitted("close")).toHaveLength(1);
    wrapper.unmount();
  });
});

describe("which label is which", () => {
  const many = Array.from({ length: 500 }, (_, n) => `topic ${n}`);
  it("draws a few of many and finds the others", async () => {
    const wrapper = mount(LabelMap, { props: { dataLabels: many, modelLabels: ["topic 499"], mapping: new Map() } });
    expect(wrapper.findAll("select")).toHaveLength(20);
    await wrapper.get("input[type=search]").setValue("topic 499");
    expect(wrapper.findAll("li").map((one) => one.get("bdi").text())).toEqual(["topic 499"]);
  });
  it("lets one type where the model has many labels, and only labels that it has", async () => {
    const wrapper = mount(LabelMap, { props: { dataLabels: ["odd"], modelLabels: many, mapping: new Map() } });
    expect(wrapper.findAll("option")).toHaveLength(500);
    await wrapper.get("input").setValue("topic 7");
    await wrapper.get("input").setValue("nothing like it");
    expect(wrapper.get("[role=alert]").text()).toBe("The model has no such label.");
    await named(wrapper, "Leave out").trigger("click");
    expect(wrapper.emitted("choose")).toEqual([["odd", "topic 7"], ["odd", null]]);
  });
  it("says which are missing and passes on what is chosen", async () => {
    const wrapper = mount(LabelMap, { props: { dataLabels: ["pos", "__proto__"], modelLabels: ["pos", "neg"], mapping: new Map([["pos", "pos"]]) } });
    expect(wrapper.text()).toContain("1 label of the data is not among the model's");
    const select = wrapper.findAll("select")[1]!;
    for (const place of [1, 3]) {
      (select.element as HTMLSelectElement).selectedIndex = place;
      await select.trigger("change");
    }
    expect(wrapper.emitted("choose")).toEqual([["__proto__", null], ["__proto__", "neg"]]);
  });
});

describe("a box for a file", () => {
  const box = (props = {}) => mount(UploadBox, { props: { kind: "data" as const, file: EMPTY, earlier: [], now: 0, ...props } });
  it("says the limit before anything is chosen", () => {
    expect(box().text()).toContain("At most 256 MB.");
    expect(box({ kind: "model" }).text()).toContain("At most 2 GB.");
  });
  it("takes a dropped file, but not while one is on its way", async () => {
    const file = new File(["a"], "a.csv");
    const idle = box();
    await idle.trigger("drop", { dataTransfer: { files: [file] } });
    expect(idle.emitted("choose")).toEqual([[file]]);
    const sending = box({ file: { state: "sending", name: "b.csv", size: 9, share: 0.5, since: 0 } });
    await sending.trigger("drop", { dataTransfer: { files: [file] } });
    expect(sending.emitted("choose")).toBeUndefined();
    await named(sending, "Stop").trigger("click");
    expect(sending.emitted("cancel")).toHaveLength(1);
  });
  it("shows the name of a file as text", () => {
    const wrapper = box({ file: { state: "failed", name: "<img src=x>.csv", reason: "no" } });
    expect(wrapper.find("img").exists()).toBe(false);
    expect(wrapper.text()).toContain("<img src=x>.csv");
  });
});

describe("dialogs", () => {
  it("are closed by a button whose name is a word, not a sign", async () => {
    HTMLDialogElement.prototype.close ??= () => undefined;
    const wrapper = mount(ModalDialog, { props: { title: "A question" } });
    await wrapper.get('button[aria-label="Close"]').trigger("click");
    expect(wrapper.emitted("close")).toHaveLength(1);
  });
});
