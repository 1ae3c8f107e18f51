/** The outbox of the person who is signed in, tied to the page: line, tabs, sign-in. */
import { computed, shallowRef, watch } from "vue";

import { api } from "./api";
import { visibleForm } from "./heat";
import { makeOutbox } from "./outbox";
import type { Item, Outbox } from "./outbox";
import { me, spoken, tell } from "./state";
import type { Answer, Opinion, Saved, WordVote } from "./types";
import { clock, plural } from "./words";

type Listener = (item: Item, saved: Saved | null) => void; // null: the server refused, or kept what it had
const listeners = new Set<Listener>();

/** Hear what became of each answer; call the answer to stop. */
export function onStored(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export interface TabNews {
  user: string;
  project: string;
  place: number | null;
}
const tabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("unhans");
const tabListeners = new Set<(news: TabNews) => void>();
tabs?.addEventListener("message", (event: MessageEvent<TabNews>) => {
  if (event.data.user === me.value?.name) for (const listener of [...tabListeners]) listener(event.data);
});

/** Hear that another tab of this person has stored something. */
export function onOtherTab(listener: (news: TabNews) => void): () => void {
  tabListeners.add(listener);
  return () => tabListeners.delete(listener);
}

let wake = (): void => {};
const wait = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    const timer = window.setTimeout(resolve, milliseconds);
    wake = () => {
      window.clearTimeout(timer);
      resolve();
    };
  });

export const outbox = shallowRef<Outbox | null>(null);

watch(
  () => me.value?.name ?? null,
  (user) => {
    if (!user) return; // what waits stays on the device until this person is back
    if (outbox.value?.user === user) return void outbox.value.resume();
    outbox.value?.close();
    outbox.value = makeOutbox({
      user,
      say: api.say,
      undo: api.undo,
      storage: localStorage,
      now: Date.now,
      wait,
      stored(item, saved) {
        spoken.value = `Saved ${clock(new Date())}`;
        tabs?.postMessage({ user, project: item.project, place: item.place } satisfies TabNews);
        for (const listener of [...listeners]) listener(item, saved);
      },
      refused(item, error) {
        if (error.message) tell(error.message, "bad");
        for (const listener of [...listeners]) listener(item, null);
      },
      back: (sent) => tell(`Back online — ${plural(sent, "answer")} sent`, "ok"),
    });
    void outbox.value.resume();
  },
  { immediate: true },
);

function tryNow(): void {
  wake();
  if (me.value) void outbox.value?.resume();
}
window.addEventListener("online", tryNow);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && tryNow());

/** The trouble in a sentence; empty while answers arrive. */
export const trouble = computed(() => {
  const box = outbox.value?.state;
  if (!box) return "";
  const kept = `${plural(box.items.length, "answer")} ${box.items.length === 1 ? "is" : "are"} kept on this device and will be sent.`;
  if (box.line === "down" && box.items.length) return `Connection lost. ${kept}`;
  if (box.line === "no_room" && box.items.length) return `${box.message} ${kept}`;
  return "";
});

/** The state of saving, always on the screen. */
export const saveState = computed(() => {
  const box = outbox.value?.state;
  if (!box) return { text: "", kind: "none" as const };
  if (box.items.length && box.line !== "open") return { text: "Not sent — kept on this device", kind: "bad" as const };
  if (box.items.length) return { text: "Saving…", kind: "busy" as const };
  return box.savedAt ? { text: `Saved ${clock(box.savedAt)}`, kind: "ok" as const } : { text: "Nothing to save yet", kind: "none" as const };
});

/** The question of a word vote: the same for two votes that answer the same. */
export function questionOf(vote: Pick<WordVote, "word" | "label" | "example" | "position">): string {
  const about = vote.example ? ["here", vote.example, vote.position ?? visibleForm(vote.word)] : ["everywhere", visibleForm(vote.word)];
  return JSON.stringify([...about, vote.label]);
}

/** The same for any answer that this page gives. */
export function questionOfAnswer(says: Answer): string {
  if (says.kind === "flip_rating") return JSON.stringify([says.kind, says.counterfactual]);
  if (says.kind === "neighbour_rating") return JSON.stringify([says.kind, says.anchor, says.train]);
  if (says.kind === "verdict") return JSON.stringify([says.kind, says.model, says.method ?? null, says.explanation_first ?? false]);
  return says.kind === "word_vote" ? questionOf(says) : JSON.stringify([says.kind, "example" in says ? says.example : null]);
}

/** Opinions after an answer has been stored: what now stands on its question takes the place of what stood. */
export function withSaved(opinions: readonly Opinion[], question: string, standing: Opinion | null): Opinion[] {
  const others = opinions.filter((one) => questionOfAnswer(one.feedback.says) !== question);
  return standing ? [...others, standing] : others;
}

/** An answer in a few words: "raise ‘good’ for ‘positive’". */
export function inWords(says: Answer): string {
  switch (says.kind) {
    case "word_vote":
      return `${says.vote} ‘${says.word}’ for ‘${says.label}’`;
    case "review":
      return says.state;
    case "relabel":
      return says.label === null ? "no label fits" : `label ‘${says.label}’`;
    case "neighbour_rating":
      return `similarity ${says.similar} of 5`;
    case "flip_rating":
      return `rated ${[says.plausible, says.meaningful, says.agrees].map((one) => one ?? "n/a").join(", ")}`;
    case "verdict":
      return `deploy: ${says.deploy} of 5`;
    default:
      return says.kind ?? "";
  }
}
