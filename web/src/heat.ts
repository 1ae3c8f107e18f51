/** From scores to what is seen and read out. */
import type { Attribution, Example, Opinion, Vote, WordVote } from "./types";
import { signed as withSign } from "./words";

/** Case and hidden characters aside: the words that an everywhere vote means (`unhans.text.visible_form`). */
export function visibleForm(word: string): string {
  const shown = word.normalize("NFC").replace(/[\p{Z}\p{Cc}\p{Cf}]+/gu, "");
  return shown.toLowerCase().replaceAll("ß", "ss").replaceAll("ς", "σ").normalize("NFC");
}

/** Control characters as pictures; everything else as it is. */
export function shown(text: string): string {
  return text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f]/g, (sign) => String.fromCodePoint(0x2400 + sign.charCodeAt(0))).replaceAll("\x7f", "␡");
}

const LEFTWARD = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}\p{Script=Samaritan}\p{Script=Mandaic}\p{Script=Hanifi_Rohingya}]/u;

/** Where a text begins, by its first letter. `dir="auto"` cannot tell, as it looks into no isolated word. */
export function directionOf(text: string): "ltr" | "rtl" {
  const letter = /\p{L}/u.exec(text)?.[0];
  return letter && LEFTWARD.test(letter) ? "rtl" : "ltr";
}

export const hasHidden = (word: string): boolean => /[\p{Cf}]/u.test(word.replace(/\p{Extended_Pictographic}[\u200d\ufe0f\p{Emoji_Modifier}\p{Extended_Pictographic}]*/gu, ""));

export interface Shade {
  share: number; // of the strongest colour, 0 to 1
  side: "for" | "against" | "none";
  size: "strong" | "medium" | "weak" | "none";
}

const WEAK = 0.05;

/** One colour scale for a whole project: `scale` is its 99th percentile, and what lies beyond is simply strongest. */
export function shadeOf(score: number, scale: number, signed = true): Shade {
  const share = scale > 0 ? Math.min(1, Math.abs(score) / scale) : 0;
  if (share < WEAK) return { share: 0, side: "none", size: "none" };
  const size = share >= 0.66 ? "strong" : share >= 0.33 ? "medium" : "weak";
  return { share, side: signed && score < 0 ? "against" : "for", size };
}

/** Whether the colours say nothing: no word stands out from the others. */
export function flat(scores: readonly number[], scale: number): boolean {
  if (scores.length < 2) return false;
  const least = scores.reduce((a, b) => Math.min(a, b)); // a text may have more words than a call may have arguments
  const most = scores.reduce((a, b) => Math.max(a, b));
  return !(scale > 0) || most - least < WEAK * scale;
}

export interface Mark {
  vote: Vote;
  scope: "here" | "everywhere";
  stale: string | null;
  sent: boolean;
}

export interface Piece {
  at: number; // number of the word in the attribution
  before: string; // blanks and the like between this word and the one before
  word: string;
  score: number;
  error: number | null;
}

export interface Block {
  part: "text" | "pair";
  direction: "ltr" | "rtl";
  pieces: Piece[];
  after: string; // behind the last word
  unread: string; // the tail that the model did not read
}

/** The words of an attribution in the raw text. Positions are code points, which JavaScript does not count in. */
export function blocksOf(example: Example, attribution: Attribution): Block[] {
  const parts: [Block["part"], string | null | undefined][] = [["text", example.text], ["pair", example.pair]];
  const unread = new Set(attribution.unread ?? []);
  const blocks: Block[] = [];
  for (const [part, text] of parts) {
    if (text === null || text === undefined) continue;
    const points = Array.from(text);
    const pieces: Piece[] = [];
    let end = 0;
    for (const [at, span] of attribution.spans.entries()) {
      if ((span.part ?? "text") !== part || unread.has(at)) continue;
      pieces.push({
        at, before: points.slice(end, span.start).join(""), word: points.slice(span.start, span.end).join(""),
        score: attribution.scores[at] ?? 0, error: attribution.errors?.[at] ?? null,
      });
      end = span.end;
    }
    const rest = points.slice(end).join("");
    const cut = attribution.spans.some((span, at) => (span.part ?? "text") === part && unread.has(at));
    blocks.push({ part, direction: directionOf(text), pieces, after: cut ? "" : rest, unread: cut ? rest : "" });
  }
  return blocks;
}

export const isVote = (opinion: Opinion): boolean => opinion.feedback.says.kind === "word_vote";
export const voteOf = (opinion: Opinion): WordVote => opinion.feedback.says as WordVote;

/** What a screen reader says after the word: "supports ‘hate’, strong, +0.42, marked lower". */
export function describe(shade: Shade, label: string, signed: boolean, value: string, mark: Mark | null): string {
  const told: string[] = [];
  if (shade.side === "none") told.push("hardly counts");
  else if (!signed) told.push(`${shade.size} strength`);
  else told.push(`${shade.side === "for" ? "supports" : "speaks against"} ‘${label}’`, shade.size);
  told.push(value);
  if (mark) told.push(`marked ${mark.vote} ${mark.scope === "everywhere" ? "everywhere" : "here"}${mark.stale ? ", out of date" : ""}`);
  return told.join(", ");
}

const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/; // would reorder the words behind it
const OPENING = /^[\p{Ps}\p{Pi}]+$/u;
const CLOSING = /^[\p{Pe}\p{Pf}\p{Po}]+$/u;

export interface Looks {
  shade: Shade;
  mark: Mark | null;
  hidden: boolean;
  told: string;
  turns: boolean;
  gap: string; // what stands before it
  text: string;
}

/** How a word is drawn and read out. */
export function looksOf(piece: Piece, before: Piece | undefined, attribution: Attribution, scale: number, mark: Mark | null = null): Looks {
  const signed = attribution.terms?.signed ?? true;
  const shade = shadeOf(piece.score, scale, signed);
  const hidden = hasHidden(piece.word);
  const value = piece.error === null ? withSign(piece.score) : `${withSign(piece.score)} ± ${withSign(piece.error).slice(1)}`;
  const told = describe(shade, attribution.label, signed, value, mark) + (hidden ? ", contains a hidden character" : "");
  const sticks = !piece.before && (CLOSING.test(piece.word) || (before !== undefined && OPENING.test(before.word)));
  return { shade, mark, hidden, told, turns: TURNING.test(piece.before), gap: sticks ? "\u2060" : shown(piece.before), text: shown(piece.word) };
}
