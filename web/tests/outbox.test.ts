import { beforeEach, expect, test } from "vitest";

import { ApiError } from "../src/api";
import { makeOutbox } from "../src/outbox";
import type { Doors, Item, NewItem } from "../src/outbox";
import type { Feedback, NewFeedback, Retraction, Saved, WordVote } from "../src/types";

const progress = { total: 10, mine: 1, anyone: 1, flagged: 0, skipped: 0 };

/** A server that keeps a log: one entry for each key, opinions as `unhans.feedback.resolve` has them. */
class Server {
  log: Feedback[] = [];
  byKey = new Map<string, Feedback>();
  asked: string[] = []; // keys, in the order of arrival
  trouble: (ApiError | "reply lost")[] = [];

  cleared = new Set<number>();

  private standing(position: number): Feedback | null {
    if (this.cleared.has(position)) return null;
    const back = new Set<string>();
    for (const entry of [...this.log].reverse()) {
      if (back.has(entry.id)) continue;
      if (entry.retracts) back.add(entry.retracts);
      else if ((entry.says as WordVote).position === position) return entry;
    }
    return null;
  }

  private answer(key: string, entry: () => Feedback): Promise<Saved> {
    this.asked.push(key);
    const trouble = this.trouble.shift();
    if (trouble instanceof ApiError) return Promise.reject(trouble);
    let made = this.byKey.get(key);
    if (!made) {
      made = entry();
      this.log.push(made);
      this.byKey.set(key, made);
    }
    if (trouble === "reply lost") return Promise.reject(new ApiError(0, "offline", "No connection."));
    const stands = this.standing((made.says as WordVote).position!);
    return Promise.resolve({ feedback: made, opinion: stands ? { feedback: stands, stale: null } : null, state: "draft", progress });
  }

  say(_project: string, given: NewFeedback): Promise<Saved> {
    const current = this.byKey.has(given.key) ? null : this.standing((given.says as WordVote).position!);
    if (!this.byKey.has(given.key) && given.expects !== null && given.expects !== undefined && (current?.id ?? "") !== given.expects) {
      this.asked.push(given.key);
      return Promise.reject(new ApiError(409, "conflict", "You answered this elsewhere.", "", current));
    }
    return this.answer(given.key, () => ({ id: `f${this.log.length}`, says: given.says, author: "anna", at: "2026-01-01T14:03:00Z", revision: given.revision }));
  }

  undo(_project: string, given: Retraction): Promise<Saved> {
    const target = this.log.find((entry) => entry.id === given.retracts)!;
    const position = (target.says as WordVote).position!;
    return this.answer(given.key, () => {
      if (given.clear) this.cleared.add(position);
      return { ...target, id: `f${this.log.length}`, retracts: target.id };
    });
  }

  votes(): [number, string][] {
    const positions = new Set(this.log.map((entry) => (entry.says as WordVote).position!));
    return [...positions].flatMap((position) => {
      const stands = this.standing(position);
      return stands ? [[position, (stands.says as WordVote).vote] as [number, string]] : [];
    });
  }
}

let server: Server;
let storage: Storage;
let waits: number[];
let stored: Item[];
let refused: ApiError[];
let back: number[];

const offline = (): ApiError => new ApiError(0, "offline", "No connection.");

function open(changed: Partial<Doors> = {}) {
  return makeOutbox({
    user: "anna",
    say: (project, given) => server.say(project, given),
    undo: (project, given) => server.undo(project, given),
    storage,
    now: () => 1_000,
    wait: (milliseconds) => (waits.push(milliseconds), Promise.resolve()),
    stored: (item) => stored.push(item),
    refused: (_item, error) => refused.push(error),
    back: (sent) => back.push(sent),
    ...changed,
  });
}

function vote(position: number, wanted: "raise" | "lower", expects: { id: string } | { madeBy: string } = { id: "" }): NewItem {
  const says: WordVote = { kind: "word_vote", word: "good", label: "positive", vote: wanted, example: "e1", position };
  return {
    kind: "say", project: "films", place: 0, says, revision: "r0", text_hash: null, seconds: 1, expects,
    effect: { of: "vote", question: String(position), example: "e1", vote: wanted },
  };
}

beforeEach(() => {
  localStorage.clear();
  storage = localStorage;
  [server, waits, stored, refused, back] = [new Server(), [], [], [], []];
});

test("an answer is in the storage before it is sent, and gone once it is stored", async () => {
  let kept = 0;
  const box = open({ say: (project, given) => ((kept = storage.length), server.say(project, given)) });
  box.put(vote(1, "raise"));
  await box.flush();
  expect(kept).toBe(1);
  expect(storage.length).toBe(0);
  expect(server.votes()).toEqual([[1, "raise"]]);
});

test("a broken line is tried again under the same key, waiting longer each time", async () => {
  server.trouble = [offline(), offline(), offline()];
  const box = open();
  box.put(vote(1, "raise"));
  await box.flush();
  expect(new Set(server.asked).size).toBe(1);
  expect(waits).toEqual([1000, 2000, 4000]);
  expect(server.log).toHaveLength(1);
  expect(back).toEqual([1]);
  expect(box.state.line).toBe("open");
});

test("an answer whose reply was lost is stored once", async () => {
  server.trouble = ["reply lost"];
  const box = open();
  box.put(vote(1, "lower"));
  await box.flush();
  expect(server.asked).toHaveLength(2);
  expect(server.log).toHaveLength(1);
});

test("answers arrive in the order in which they were given, also when the first is held up", async () => {
  server.trouble = [offline(), new ApiError(503, "busy", "The server is restarting.")];
  const box = open();
  for (const position of [3, 1, 2]) box.put(vote(position, "raise"));
  await box.flush();
  expect(server.log.map((entry) => (entry.says as WordVote).position)).toEqual([3, 1, 2]);
});

test("a second answer to the same question expects the first, although that has no id yet", async () => {
  server.trouble = [offline()];
  const box = open();
  const first = box.put(vote(1, "raise"));
  box.put(vote(1, "lower", { madeBy: first.key }));
  await box.flush();
  expect(server.votes()).toEqual([[1, "lower"]]);
  expect(refused).toEqual([]);
  expect(box.state.conflict).toBeNull();
});

test("a reset asks to take back older answers too, that would otherwise come to light", async () => {
  const box = open();
  const first = box.put(vote(1, "raise"));
  const second = box.put(vote(1, "lower", { madeBy: first.key }));
  box.put({ kind: "reset", project: "films", place: 0, retracts: { madeBy: second.key }, effect: { of: "vote", question: "1", example: "e1", vote: null } });
  await box.flush();
  expect(server.votes()).toEqual([]);
  expect(stored.at(-1)?.kind).toBe("reset");
});

test("an undo takes back one answer only", async () => {
  const box = open();
  const first = box.put(vote(1, "raise"));
  const second = box.put(vote(1, "lower", { madeBy: first.key }));
  box.put({ kind: "undo", project: "films", place: 0, retracts: { madeBy: second.key }, example: null, effect: { of: "nothing" } });
  await box.flush();
  expect(server.votes()).toEqual([[1, "raise"]]);
});

test("what a page left behind is sent by the next one, as the same person only", async () => {
  const never = open({ say: () => new Promise(() => {}) });
  never.put(vote(1, "raise"));
  never.put(vote(2, "lower"));
  never.close();
  const other = open({ user: "bert" });
  await other.resume();
  expect(server.log).toEqual([]);
  const again = open();
  await again.resume();
  expect(server.votes()).toEqual([[1, "raise"], [2, "lower"]]);
  expect(storage.length).toBe(0);
});

test("without a session everything waits, and goes on after signing in", async () => {
  server.trouble = [new ApiError(401, "sign_in", "Please sign in again. Nothing was lost.")];
  const box = open();
  box.put(vote(1, "raise"));
  await box.flush();
  expect(box.state.line).toBe("signed_out");
  expect(storage.length).toBe(1);
  await box.resume();
  expect(server.votes()).toEqual([[1, "raise"]]);
});

test("no room on the server is said in its own words and tried again", async () => {
  server.trouble = [new ApiError(507, "no_space", "The server has no disk space.")];
  const lines: string[] = [];
  const box = open({ wait: () => (lines.push(`${box.state.line}: ${box.state.message}`), Promise.resolve()) });
  box.put(vote(1, "raise"));
  await box.flush();
  expect(lines).toEqual(["no_room: The server has no disk space."]);
  expect(server.votes()).toEqual([[1, "raise"]]);
});

test("a refused answer does not hold up the next", async () => {
  server.trouble = [new ApiError(422, "invalid", "There is no such word.")];
  const box = open();
  const first = box.put(vote(1, "raise"));
  box.put(vote(1, "lower", { madeBy: first.key }));
  await box.flush();
  expect(refused.map((error) => error.status)).toEqual([422]);
  expect(server.votes()).toEqual([[1, "lower"]]);
  expect(storage.length).toBe(0);
});

test("a conflict waits for the person, who may keep what is stored", async () => {
  const elsewhere = open();
  elsewhere.put(vote(1, "raise"));
  await elsewhere.flush();
  const box = open();
  box.put(vote(1, "lower"));
  box.put(vote(2, "lower"));
  await box.flush();
  expect(box.state.conflict?.current?.says).toMatchObject({ vote: "raise" });
  expect(server.votes()).toEqual([[1, "raise"]]);
  await box.decide(false);
  expect(server.votes()).toEqual([[1, "raise"], [2, "lower"]]);
});

test("a conflict waits for the person, who may use what was said here", async () => {
  const elsewhere = open();
  elsewhere.put(vote(1, "raise"));
  await elsewhere.flush();
  const box = open();
  const mine = box.put(vote(1, "lower"));
  box.put({ kind: "undo", project: "films", place: 0, retracts: { madeBy: mine.key }, example: null, effect: { of: "nothing" } });
  await box.flush();
  await box.decide(true);
  expect(server.log.map((entry) => (entry.says as WordVote).vote)).toEqual(["raise", "lower", "lower"]);
  expect(server.votes()).toEqual([[1, "raise"]]); // the undo followed the answer under its new key
  expect(storage.length).toBe(0);
});

test("storage that cannot be read is not in the way", async () => {
  storage.setItem("unhans.outbox|anna|films|1", "{cut off");
  const box = open();
  await box.resume();
  expect(box.waiting.value).toBe(0);
});
