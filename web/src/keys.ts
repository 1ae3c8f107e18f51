/** Keys: what each does by default, what somebody chose instead, and how a press is matched. */
import { onBeforeUnmount, onMounted } from "vue";

import { preference } from "./state";

export const ACTIONS = {
  word_next: { keys: ["ArrowRight"], text: "Next word" },
  word_previous: { keys: ["ArrowLeft"], text: "Previous word" },
  row_next: { keys: ["ArrowDown"], text: "Next in the list: word, flip, training example" },
  row_previous: { keys: ["ArrowUp"], text: "Previous in the list" },
  raise: { keys: ["+", "="], text: "Raise the word: it should count more" },
  lower: { keys: ["-", "−"], text: "Lower the word: it should count less" },
  reset: { keys: ["0"], text: "Reset the word" },
  here: { keys: ["h"], text: "Votes count here only" },
  everywhere: { keys: ["e"], text: "Votes count everywhere" },
  find: { keys: ["r"], text: "Look for a flip" },
  rate_1: { keys: ["1"], text: "Rate 1, the least" },
  rate_2: { keys: ["2"], text: "Rate 2" },
  rate_3: { keys: ["3"], text: "Rate 3" },
  rate_4: { keys: ["4"], text: "Rate 4" },
  rate_5: { keys: ["5"], text: "Rate 5, the most" },
  rate_none: { keys: ["x"], text: "The question does not apply" },
  accept: { keys: ["a"], text: "Accept the suggested label" },
  given: { keys: ["g"], text: "The given label is right" },
  relabel: { keys: ["l"], text: "Choose another label" },
  drop: { keys: ["d"], text: "No label fits: train without it" },
  other_side: { keys: ["t"], text: "Helpful or harmful training examples" },
  done: { keys: ["Enter", "Ctrl+Enter"], text: "Save and next" },
  undo: { keys: ["Backspace", "Ctrl+z"], text: "Undo" },
  skip: { keys: ["s"], text: "Skip" },
  flag: { keys: ["f"], text: "Flag for somebody else" },
  note: { keys: ["n"], text: "Write a note" },
  next: { keys: ["j", "PageDown"], text: "Next example" },
  previous: { keys: ["k", "PageUp"], text: "Previous example" },
  tab_next: { keys: ["]"], text: "Next part of the screen" },
  tab_previous: { keys: ["["], text: "Part of the screen before" },
  search: { keys: ["/"], text: "Search" },
  help: { keys: ["?"], text: "Show the keys" },
} as const satisfies Record<string, { keys: readonly string[]; text: string }>;

export type Action = keyof typeof ACTIONS;
export const actions = Object.keys(ACTIONS) as Action[];

/** Stored under the preference `keys`: action → keys, only where somebody changed them. */
export type KeyChoice = Partial<Record<Action, string[]>>;

const MAX_KEY = 20; // a stored key is data, and data can be anything

/** The keys of an action now: the person's own, or the default. */
export function keysOf(action: Action, chosen: unknown = preference("keys", {})): readonly string[] {
  if (typeof chosen === "object" && chosen !== null && Object.hasOwn(chosen, action)) {
    const own: unknown = (chosen as Record<string, unknown>)[action];
    if (Array.isArray(own)) return own.filter((key): key is string => typeof key === "string" && 0 < key.length && key.length <= MAX_KEY);
  }
  return ACTIONS[action].keys;
}

type Press = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">;

/** The name under which a press is stored: `x`, `?`, `ArrowLeft`, `Ctrl+z`. */
export function pressName(press: Press): string {
  const key = press.key.length === 1 ? press.key.toLowerCase() : press.key;
  return `${press.ctrlKey || press.metaKey ? "Ctrl+" : ""}${press.altKey ? "Alt+" : ""}${key}`;
}

/** The action that a press asks for among those that a view offers. */
export function actionOf(press: Press, offered: readonly Action[], chosen: unknown = preference("keys", {})): Action | null {
  const name = pressName(press);
  return offered.find((action) => keysOf(action, chosen).includes(name)) ?? null;
}

/** Two actions of one view on the same key: `[key, action, action]`. */
export function clashes(chosen: KeyChoice): [string, Action, Action][] {
  const seen = new Map<string, Action>();
  const found: [string, Action, Action][] = [];
  for (const action of actions)
    for (const key of keysOf(action, chosen)) {
      const other = seen.get(key);
      if (other) found.push([key, other, action]);
      else seen.set(key, action);
    }
  return found;
}

const shown = new Map([
  ["ArrowRight", "→"], ["ArrowLeft", "←"], ["ArrowUp", "↑"], ["ArrowDown", "↓"],
  ["Backspace", "⌫"], ["PageDown", "PgDn"], ["PageUp", "PgUp"], ["-", "−"], ["+", "+"], [" ", "Space"],
]);

/** A key as it is printed on buttons. */
export function keyText(key: string): string {
  const plain = key.replace(/^Ctrl\+|Alt\+/g, "");
  const front = key.slice(0, key.length - plain.length);
  return front + (shown.get(plain) ?? (plain.length === 1 ? plain.toUpperCase() : plain));
}

export const firstKey = (action: Action): string => keyText(keysOf(action)[0] ?? "");

/** Whether keys belong to what has the focus: a field, an open dialog. */
export function typing(target: EventTarget | null): boolean {
  if (!(target instanceof Element)) return false;
  if (target.closest("dialog[open]")) return true;
  const field = target.closest("input, textarea, select, [contenteditable='true']");
  return field !== null && !(field instanceof HTMLInputElement && ["checkbox", "radio", "button", "range"].includes(field.type));
}

/**
 * Hear the keys of a view while it is on the page. A key held down counts once, except for moving. The handler may
 * return `false` to leave the press to the browser. Enter and Space on a link or button stay with it, unless it is
 * one that says `data-keys="view"`.
 */
export function useKeys(offered: readonly Action[], act: (action: Action, event: KeyboardEvent) => unknown): void {
  const moving = new Set<Action>(["word_next", "word_previous", "row_next", "row_previous", "next", "previous"]);
  function heard(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing || typing(event.target) || document.querySelector("dialog[open]")) return;
    const action = actionOf(event, offered);
    if (!action) return;
    const control = event.target instanceof Element ? event.target.closest("a[href], button, summary, [role='radio'], input") : null;
    if (control && !event.ctrlKey && (event.key === "Enter" || event.key === " ") && control.getAttribute("data-keys") !== "view") return;
    if (event.repeat && !moving.has(action)) return event.preventDefault();
    if (act(action, event) !== false) event.preventDefault();
  }
  onMounted(() => window.addEventListener("keydown", heard));
  onBeforeUnmount(() => window.removeEventListener("keydown", heard));
}
