/** Numbers, times and counts as people write them. */
import type { Job } from "./types";

export const count = (n: number): string => n.toLocaleString("en");
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
export const percent = (share: number, digits = 0): string => `${(share * 100).toFixed(digits)} %`;

/** A score with its sign and two significant digits. */
export function signed(score: number): string {
  if (score === 0) return "0";
  const size = Math.abs(score);
  const text = size >= 0.001 && size < 1000 ? String(Number(size.toPrecision(2))) : size.toExponential(1);
  return (score > 0 ? "+" : "−") + text;
}

export const clock = (at: string | Date): string =>
  new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

export function when(at: string): string {
  const date = new Date(at);
  const today = date.toDateString() === new Date().toDateString();
  return today ? clock(date) : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" })}, ${clock(date)}`;
}

/** "about 4 minutes"; nothing finer, because nobody knows. */
export function about(seconds: number): string {
  if (seconds < 10) return "a few seconds";
  if (seconds < 90) return `about ${Math.round(seconds / 10) * 10} seconds`;
  if (seconds < 5400) return `about ${plural(Math.round(seconds / 60), "minute")}`;
  return `about ${plural(Math.round(seconds / 3600), "hour")}`;
}

const kinds = new Map([
  ["check", "Check of a plan"],
  ["create", "New project"],
  ["predict", "Predictions"],
  ["explain", "Explanations"],
  ["words", "Word ranking"],
  ["flips", "Flips"],
  ["trace", "Neighbours"],
  ["copies", "Copies of training examples"],
  ["doubts", "Label errors"],
  ["audit", "Audit"],
  ["lab", "Bug lab"],
  ["fix", "Fix"],
  ["compare", "Before and after"],
  ["export", "Export"],
]);
export const jobName = (job: Pick<Job, "kind">): string => kinds.get(job.kind) ?? job.kind;
export const jobShare = (job: Job): number | null => (job.done !== null && job.total ? Math.min(1, job.done / job.total) : null);

/** A method's name without underscores. */
export const plainName = (name: string): string => name.replaceAll("_", " ");

const answers = new Map([
  ["word_vote", "Votes on words"],
  ["relabel", "Labels"],
  ["review", "Examples judged"],
  ["word_vote_everywhere", "Votes on words everywhere"],
  ["flip_rating", "Ratings of rewrites"],
  ["flip_plausible", "Rewrites: plausible"],
  ["flip_meaningful", "Rewrites: meaningful"],
  ["flip_agrees", "Rewrites: as expected"],
  ["neighbour_rating", "Ratings of similar texts"],
  ["neighbour_similar", "Similar texts"],
  ["ruling", "Rulings"],
  ["verdict", "Verdicts"],
  ["verdict_deploy", "Verdicts: would deploy it"],
]);
/** A kind of answer in words; one that this page does not know yet goes by its name. */
export const answerKind = (kind: string): string => answers.get(kind) ?? plainName(kind);

/** A time that was measured: two figures are all it is good for. */
export function lasted(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
