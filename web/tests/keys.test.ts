import { mount } from "@vue/test-utils";
import { afterEach, expect, test } from "vitest";
import { defineComponent, h } from "vue";

import { ACTIONS, actionOf, actions, clashes, keysOf, keyText, pressName, useKeys } from "../src/keys";
import type { Action } from "../src/keys";

const press = (key: string, more: Partial<KeyboardEvent> = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, ...more });

let heard: Action[] = [];
function view(offered: Action[], inside: () => ReturnType<typeof h>) {
  heard = [];
  const component = defineComponent({ setup: () => (useKeys(offered, (action) => void heard.push(action)), inside) });
  return mount(component, { attachTo: document.body });
}
function strike(target: Element, key: string, more: KeyboardEventInit = {}): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  target.dispatchEvent(event);
  return event;
}
afterEach(() => (document.body.innerHTML = ""));

test("the defaults do not clash", () => {
  expect(clashes({})).toEqual([]);
});

test("a clash of chosen keys is told", () => {
  expect(clashes({ skip: ["f"] })).toEqual([["f", "skip", "flag"]]);
});

test("every default key leads to its own action", () => {
  for (const action of actions)
    for (const key of ACTIONS[action].keys) {
      const plain = key.replace("Ctrl+", "");
      expect(actionOf(press(plain, { ctrlKey: key.startsWith("Ctrl+") }), actions, {})).toBe(action);
    }
});

test("capital letters are the same keys, and the Mac's command key is control", () => {
  expect(actionOf(press("S"), ["skip"], {})).toBe("skip");
  expect(pressName(press("z", { metaKey: true }))).toBe("Ctrl+z");
});

test("a chosen key takes the place of the default", () => {
  const chosen = { skip: ["x"] };
  expect(actionOf(press("x"), ["skip"], chosen)).toBe("skip");
  expect(actionOf(press("s"), ["skip"], chosen)).toBeNull();
});

test("stored keys that are no keys are not used", () => {
  expect(keysOf("skip", { skip: [7, "", "y".repeat(50), "q"] })).toEqual(["q"]);
  expect(keysOf("skip", { skip: "s" })).toEqual(["s"]);
  expect(keysOf("skip", null)).toEqual(["s"]);
  expect(keysOf("skip", Object.create({ skip: ["evil"] }))).toEqual(["s"]);
});

test("keys are printed as people know them", () => {
  expect(["ArrowLeft", "Ctrl+z", "-", "Enter", "<img>"].map(keyText)).toEqual(["←", "Ctrl+Z", "−", "Enter", "<img>"]);
});

test("keys rest while somebody types", () => {
  const wrapper = view(["skip"], () => h("div", [h("input"), h("textarea"), h("p", { tabindex: -1 })]));
  strike(wrapper.find("input").element, "s");
  strike(wrapper.find("textarea").element, "s");
  expect(heard).toEqual([]);
  strike(wrapper.find("p").element, "s");
  expect(heard).toEqual(["skip"]);
  wrapper.unmount();
});

test("a key held down is one answer, but moves on and on", () => {
  const wrapper = view(["done", "word_next"], () => h("p"));
  strike(document.body, "Enter");
  const held = strike(document.body, "Enter", { repeat: true });
  strike(document.body, "ArrowRight");
  strike(document.body, "ArrowRight", { repeat: true });
  expect(heard).toEqual(["done", "word_next", "word_next"]);
  expect(held.defaultPrevented).toBe(true);
  wrapper.unmount();
});

test("Enter on a button is the button's, unless it leaves its keys to the view", () => {
  const wrapper = view(["done", "skip"], () => h("div", [h("button", { id: "own" }), h("button", { id: "word", "data-keys": "view" })]));
  expect(strike(wrapper.find("#own").element, "Enter").defaultPrevented).toBe(false);
  expect(heard).toEqual([]);
  strike(wrapper.find("#own").element, "s");
  strike(wrapper.find("#word").element, "Enter");
  strike(wrapper.find("#own").element, "Enter", { ctrlKey: true });
  expect(heard).toEqual(["skip", "done", "done"]);
  wrapper.unmount();
});

test("a view that is gone hears nothing", () => {
  view(["skip"], () => h("p")).unmount();
  strike(document.body, "s");
  expect(heard).toEqual([]);
});
