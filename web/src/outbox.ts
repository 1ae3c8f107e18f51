/**
 * Answers on their way to the server. Each is written to the browser's storage before it is sent and stays there until
 * the server has stored it, so that neither a broken line, nor a reload, nor a closed laptop loses one. They are sent
 * one after the other, in the order in which they were given; each keeps its key, so that sending twice stores once.
 */
import { computed, reactive } from "vue";

import { ApiError } from "./api";
import type { Answer, Feedback, FlipRating, NeighbourRating, NewFeedback, Relabel, Retraction, Saved, State, Verdict, Vote } from "./types";

/** What an answer changes on the screen. */
export type Effect =
  | { of: "vote"; question: string; example: string | null; vote: Vote | null }
  | { of: "state"; example: string; state: State }
  | { of: "rating"; flip: string; says: FlipRating | null }
  | { of: "similarity"; anchor: string; train: string; says: NeighbourRating | null }
  | { of: "label"; example: string; says: Relabel | null }
  | { of: "verdict"; question: string; says: Verdict | null }
  | { of: "nothing" };

/** An entry of the log: known by its id, or made by an answer that is still on its way. */
export type Entry = { id: string } | { madeBy: string };

export type Item = {
  key: string;
  order: string; // sorts items of all tabs as they were given
  project: string;
  place: number | null; // where to look again if the server refuses
  effect: Effect; // what the screen shows until the server has answered
} & (
  | { kind: "say"; says: Answer; revision: string; text_hash: string | null; seconds: number | null; expects: Entry | null }
  | { kind: "reset"; retracts: Entry } // and all that was said on its question before
  | { kind: "undo"; retracts: Entry | null; example: string | null }
);

export type NewItem = Item extends infer I ? (I extends Item ? Omit<I, "key" | "order"> : never) : never;

/** `conflict`: the queue waits for the person; `signed_out`: for a session. */
export type Line = "open" | "down" | "no_room" | "conflict" | "signed_out";

export interface Doors {
  user: string;
  say(project: string, feedback: NewFeedback): Promise<Saved>;
  undo(project: string, retraction: Retraction): Promise<Saved>;
  storage: Storage;
  now(): number;
  wait(milliseconds: number): Promise<void>; // resolves earlier when the line may be back
  stored(item: Item, saved: Saved): void;
  refused(item: Item, error: ApiError): void;
  back(sent: number): void; // the line was down and everything has been sent now
}

const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;
const PREFIX = "unhans.outbox|";

/** 128 random bits; `crypto.randomUUID` is missing on plain http. */
export function freshKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function makeOutbox(doors: Doors) {
  const prefix = `${PREFIX}${encodeURIComponent(doors.user)}|`;
  const state = reactive({
    items: [] as Item[],
    line: "open" as Line,
    message: "", // the server's own words about the trouble
    savedAt: null as Date | null,
    conflict: null as { item: Item; current: Feedback | null } | null,
  });
  let counter = 0;
  let sending: Promise<void> | null = null;
  let stopped = false;
  let sentSinceDown = 0;

  const nameOf = (item: Item): string => `${prefix}${encodeURIComponent(item.project)}|${item.order}`;

  function keep(item: Item): void {
    try {
      doors.storage.setItem(nameOf(item), JSON.stringify(item));
    } catch {
      state.message = "This browser cannot keep answers on the device. Stay on this page until they are sent."; // full or forbidden
    }
  }

  function drop(item: Item): void {
    doors.storage.removeItem(nameOf(item));
    const at = state.items.findIndex((one) => one.key === item.key);
    if (at >= 0) state.items.splice(at, 1);
  }

  /** Finds what this page before a reload, or a tab since closed, has left behind. A living tab's is sent twice, stored once. */
  function collect(): void {
    const known = new Set(state.items.map((item) => item.key));
    for (let n = 0; n < doors.storage.length; n++) {
      const name = doors.storage.key(n);
      if (!name?.startsWith(prefix)) continue;
      try {
        const item = JSON.parse(doors.storage.getItem(name) ?? "null") as Item | null;
        if (item && typeof item.key === "string" && !known.has(item.key)) state.items.push(item);
      } catch {
        doors.storage.removeItem(name); // not ours, or cut off in the middle: nobody could ever send it
      }
    }
    state.items.sort((a, b) => (a.order < b.order ? -1 : 1));
  }

  function put(given: NewItem): Item {
    const order = `${String(doors.now()).padStart(15, "0")}-${String(counter++).padStart(6, "0")}`;
    const item = { ...given, key: freshKey(), order } as Item;
    state.items.push(item);
    keep(item);
    void flush();
    return item;
  }

  /** What refers to the answer `key` from now on refers to what became of it. */
  function settle(key: string, entry: Entry): void {
    const follows = (one: Entry | null): boolean => one !== null && "madeBy" in one && one.madeBy === key;
    for (const item of state.items) {
      if (item.kind === "say" && follows(item.expects)) item.expects = entry;
      else if (item.kind !== "say" && follows(item.retracts)) item.retracts = entry;
      else continue;
      keep(item);
    }
  }

  const idOf = (entry: Entry | null): string | null => (entry === null ? null : "id" in entry ? entry.id : "");

  function send(item: Item): Promise<Saved> {
    if (item.kind === "say")
      return doors.say(item.project, {
        key: item.key, says: item.says, revision: item.revision, text_hash: item.text_hash, seconds: item.seconds, expects: idOf(item.expects),
      });
    const example = item.kind === "undo" ? item.example : null;
    return doors.undo(item.project, { key: item.key, retracts: idOf(item.retracts) || null, example, clear: item.kind === "reset" });
  }

  async function sendAll(): Promise<void> {
    let pause = FIRST_WAIT;
    while (!stopped && state.items.length && state.line !== "conflict" && state.line !== "signed_out") {
      const item = state.items[0]!;
      if (item.kind !== "say" && idOf(item.retracts) === "") {
        drop(item); // what it would take back was never stored
        continue;
      }
      try {
        const saved = await send(item);
        drop(item);
        state.savedAt = new Date(doors.now());
        if (state.line !== "open") sentSinceDown++;
        pause = FIRST_WAIT;
        settle(item.key, { id: item.kind === "say" && saved.feedback ? saved.feedback.id : (saved.opinion?.feedback.id ?? "") });
        doors.stored(item, saved);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        state.message = error.message;
        if (error.status === 401) state.line = "signed_out";
        else if (error.status === 409 && item.kind === "say") {
          state.line = "conflict";
          state.conflict = { item, current: error.current };
        } else if (error.passing) {
          state.line = error.status === 507 ? "no_room" : "down";
          await doors.wait(pause);
          pause = Math.min(LONGEST_WAIT, pause * 2);
        } else {
          drop(item);
          settle(item.key, (item.kind === "say" ? item.expects : item.retracts) ?? { id: "" });
          doors.refused(item, error);
        }
      }
    }
    if (!state.items.length && (state.line === "down" || state.line === "no_room")) {
      state.line = "open";
      state.message = "";
      doors.back(sentSinceDown);
      sentSinceDown = 0;
    }
  }

  function flush(): Promise<void> {
    sending ??= sendAll().finally(() => (sending = null));
    return sending;
  }

  return {
    user: doors.user,
    state,
    put,
    flush,
    waiting: computed(() => state.items.length),
    ofProject: (project: string): Item[] => state.items.filter((item) => item.project === project),

    /** Signed in again, or just opened: send what is left. */
    resume(): Promise<void> {
      collect();
      if (state.line === "signed_out") state.line = "down";
      return flush();
    },

    /** The answer to a conflict: keep what is stored, or store mine over it. */
    decide(mine: boolean): Promise<void> {
      const asked = state.conflict;
      if (!asked) return Promise.resolve();
      state.conflict = null;
      state.line = "open";
      const { item, current } = asked;
      if (!mine || item.kind !== "say") {
        drop(item);
        settle(item.key, { id: current?.id ?? "" });
        doors.refused(item, new ApiError(409, "kept", ""));
      } else {
        const again: Item = { ...item, key: freshKey(), expects: { id: current?.id ?? "" } };
        doors.storage.removeItem(nameOf(item));
        state.items.splice(state.items.findIndex((one) => one.key === item.key), 1, again);
        settle(item.key, { madeBy: again.key });
        keep(again);
      }
      return flush();
    },

    close(): void {
      stopped = true;
    },
  };
}

export type Outbox = ReturnType<typeof makeOutbox>;
