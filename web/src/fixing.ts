/** What a fix is asked for: reading what people type, and what it will cost. Pure functions. */
import type { FeedbackUse, FixMethod, MethodOption, Options, PersonShare, VoteUse } from "./types";
import { about } from "./words";

export interface Parsed<T> {
  values: T[];
  wrong: string; // what cannot be read, in a sentence; empty: nothing
}

const MOST_STRENGTHS = 12;

/** "0.1, 0.3, 1" as numbers: each once, in order. A comma between digits parts numbers, it is no decimal point. */
export function parseStrengths(text: string): Parsed<number> {
  const pieces = text.split(/[\s,;]+/).filter(Boolean);
  const values: number[] = [];
  for (const piece of pieces) {
    const value = Number(piece);
    if (!/^\d*\.?\d+(e-?\d+)?$/i.test(piece) || value > 1000) return { values: [], wrong: `“${piece}” is not a strength: write numbers from 0 to 1000, such as 0.1, 0.3, 1.` };
    if (!values.includes(value)) values.push(value);
  }
  if (values.length > MOST_STRENGTHS) return { values: [], wrong: `At most ${MOST_STRENGTHS} strengths: each is a training of its own.` };
  return { values: values.sort((one, other) => one - other), wrong: "" };
}

const LONGEST = 500;

/** One expectation a line; blank lines count for nothing, and neither does saying it twice. */
export function parseExpectations(text: string): Parsed<string> {
  const values = [...new Set(text.split("\n").map((line) => line.trim()).filter(Boolean))];
  const long = values.find((line) => line.length > LONGEST);
  return long ? { values: [], wrong: `An expectation has at most ${LONGEST} characters: “${long.slice(0, 40)}…” has more.` } : { values, wrong: "" };
}

/** Who gives more than half of all answers, when there are others. */
export function dominant(people: readonly PersonShare[]): PersonShare | null {
  return people.length > 1 ? (people.find((one) => one.share > 0.5) ?? null) : null;
}

const SAME_ANSWER = 0.95;
const ENOUGH = 10;

/** The kinds to which somebody nearly always answers the same: perhaps rightly, perhaps without looking. */
export const monotonous = (person: PersonShare): PersonShare["by_kind"] => person.by_kind.filter(([, answers, , share]) => answers >= ENOUGH && share >= SAME_ANSWER);

/** Votes that touch most texts first; labels after words. */
export function sortVotes(votes: readonly VoteUse[]): VoteUse[] {
  return [...votes].sort((one, other) => Number(one.kind === "relabel") - Number(other.kind === "relabel") || other.texts - one.texts || (one.word ?? "").localeCompare(other.word ?? ""));
}

export interface Plan {
  fix: string;
  rivals: readonly string[];
  strengths: readonly number[];
  seeds: number;
  training: Options;
}

/** How many trainings a plan asks for. */
export const trainings = ({ rivals, strengths, seeds }: Plan): number => Math.max(1, seeds) + strengths.length + rivals.length;

/** Seconds that a plan takes, from what a run of each fix takes with default settings; null: nothing to go by yet. */
export function seconds(plan: Plan, methods: readonly FixMethod[], training: readonly MethodOption[]): number | null {
  const of = (name: string): number | null => methods.find((one) => one.method.name === name)?.seconds ?? null;
  const parts = [of(plan.fix), ...plan.rivals.map(of)];
  if (parts.some((one) => one === null)) return null;
  const usual = training.find((one) => one.name === "epochs")?.default;
  const epochs = plan.training.epochs;
  const longer = typeof usual === "number" && usual > 0 && typeof epochs === "number" ? epochs / usual : 1;
  const [own, ...others] = parts as number[];
  return longer * (own! * (Math.max(1, plan.seeds) + plan.strengths.length) + others.reduce((sum, one) => sum + one, 0));
}

/** "About 4 minutes on this machine, for 3 trainings." */
export function costText(plan: Plan, methods: readonly FixMethod[], training: readonly MethodOption[]): string {
  const n = trainings(plan);
  const runs = n === 1 ? "one training" : `${n} trainings`;
  const time = seconds(plan, methods, training);
  if (time === null) return `How long ${runs} will take here cannot be told before the first has begun.`;
  const told = about(time);
  return `${told.charAt(0).toUpperCase()}${told.slice(1)} on this machine, for ${runs} and the check afterwards.`;
}

/** The fix to offer first: the first that can be used and has something to learn from, rather one that is no mere baseline. */
export function firstFix(methods: readonly FixMethod[]): string {
  const able = methods.filter((one) => one.method.usable && one.answers > 0);
  return (able.find((one) => !one.cheap) ?? able[0] ?? methods[0])?.method.name ?? "";
}

/** Why there is nothing to learn from yet; empty: there is. */
export function nothingToLearn(feedback: FeedbackUse, methods: readonly FixMethod[]): string {
  if (methods.some((one) => one.method.usable && one.answers > 0)) return "";
  const left = feedback.stale.reduce((sum, [, answers]) => sum + answers, 0) + feedback.undecided;
  return left ? "There are answers, but none of them can be used: they are out of date, or people are divided." : "Nobody has said yet which words should count more or less.";
}
