/** What somebody has said about an example, including what is still on its way; and how the next answer is put. */
import { questionOf, questionOfAnswer } from "./answers";
import { isVote, voteOf } from "./heat";
import type { Mark } from "./heat";
import type { Effect, Entry, Item, NewItem } from "./outbox";
import type { Answer, Attribution, ExampleView, Feedback, Opinion, State, Vote } from "./types";

export interface Standing {
  vote: Vote;
  stale: string | null;
  sent: boolean;
}

function effectQuestion(effect: Effect): string | null {
  if (effect.of === "vote") return effect.question;
  if (effect.of === "rating") return JSON.stringify(["flip_rating", effect.flip]);
  if (effect.of === "similarity") return JSON.stringify(["neighbour_rating", effect.anchor, effect.train]);
  if (effect.of === "label") return JSON.stringify(["relabel", effect.example]);
  if (effect.of === "verdict") return effect.question;
  return effect.of === "state" ? JSON.stringify(["review", effect.example]) : null;
}

/** The entry that stands on a question once all that waits has been sent: what an answer expects, or takes back. */
export function entryOn(question: string, stored: Feedback | null, waiting: readonly Item[]): Entry {
  const last = waiting.findLast((item) => effectQuestion(item.effect) === question);
  return last ? { madeBy: last.key } : { id: stored?.id ?? "" };
}

/** Votes by question: those stored, changed by those that wait. */
export function votesOf(opinions: readonly Opinion[], waiting: readonly Item[]): Map<string, Standing> {
  const votes = new Map<string, Standing>();
  for (const one of opinions)
    if (isVote(one)) votes.set(questionOf(voteOf(one)), { vote: voteOf(one).vote, stale: one.stale, sent: true });
  for (const { effect } of waiting) {
    if (effect.of !== "vote") continue;
    if (effect.vote) votes.set(effect.question, { vote: effect.vote, stale: null, sent: false });
    else votes.delete(effect.question);
  }
  return votes;
}

/** Marks by number of the word; a vote here hides one everywhere. */
export function marksOf(example: string, attribution: Attribution, label: string, votes: ReadonlyMap<string, Standing>): Map<number, Mark> {
  const marks = new Map<number, Mark>();
  if (!votes.size) return marks;
  for (const [position, word] of attribution.words.entries()) {
    const here = votes.get(questionOf({ word, label, example, position })) ?? votes.get(questionOf({ word, label, example, position: null }));
    const everywhere = votes.get(questionOf({ word, label, example: null, position: null }));
    if (here) marks.set(position, { ...here, scope: "here" });
    else if (everywhere) marks.set(position, { ...everywhere, scope: "everywhere" });
  }
  return marks;
}

export function stateOf(view: ExampleView, waiting: readonly Item[]): State {
  const last = waiting.findLast(({ effect }) => effect.of === "state" && effect.example === view.example.id);
  if (last?.effect.of === "state") return last.effect.state;
  const voted = waiting.some(({ effect }) => effect.of === "vote" && effect.example === view.example.id && effect.vote);
  return view.state === "pending" && voted ? "draft" : view.state;
}

export interface Saying {
  project: string;
  place: number | null;
  revision: string;
  text_hash: string | null; // of the text that was looked at, for answers about one
  seconds: number | null;
}

/** An answer, ready for the outbox. `opinions`: what is stored about the matter. */
export function saying(says: Answer, { project, place, revision, text_hash, seconds }: Saying, opinions: readonly Opinion[], waiting: readonly Item[]): NewItem {
  const question = questionOfAnswer(says);
  const stored = opinions.find((one) => questionOfAnswer(one.feedback.says) === question)?.feedback ?? null;
  const effect: Effect =
    says.kind === "word_vote" ? { of: "vote", question, example: says.example ?? null, vote: says.vote }
    : says.kind === "review" ? { of: "state", example: says.example, state: says.state }
    : says.kind === "flip_rating" ? { of: "rating", flip: says.counterfactual, says }
    : says.kind === "neighbour_rating" ? { of: "similarity", anchor: says.anchor, train: says.train, says }
    : says.kind === "relabel" ? { of: "label", example: says.example, says }
    : says.kind === "verdict" ? { of: "verdict", question, says }
    : { of: "nothing" };
  const rounded = seconds === null ? null : Math.min(86_400, Math.round(seconds * 1000) / 1000);
  return { kind: "say", says, project, place, revision, text_hash, seconds: rounded, expects: entryOn(question, stored, waiting), effect };
}
