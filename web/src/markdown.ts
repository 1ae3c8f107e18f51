/** Guidelines are Markdown that somebody else wrote: parsed into plain data here, drawn without HTML by `parts/Markdown.ts`. */

export type Inline =
  | { kind: "text" | "code"; text: string }
  | { kind: "strong" | "em"; inside: Inline[] }
  | { kind: "link"; href: string; inside: Inline[] }
  | { kind: "picture"; alt: string }
  | { kind: "break" };

export type Block =
  | { kind: "heading"; level: number; inside: Inline[] }
  | { kind: "paragraph"; inside: Inline[] }
  | { kind: "list"; ordered: boolean; start: number; items: Block[][] }
  | { kind: "quote"; inside: Block[] }
  | { kind: "code"; text: string }
  | { kind: "rule" };

const DEEPEST = 6; // of lists, quotes and emphasis inside each other: nobody writes more, and it bounds the work

/** The address if it is one that a reader may be sent to, in the form the browser understands it; otherwise null. */
export function safeAddress(written: string): string | null {
  if (!/^(https?:\/\/|mailto:)[^\s\u0000-\u0020]+$/i.test(written)) return null;
  try {
    const url = new URL(written);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

export function parseMarkdown(source: string): Block[] {
  return blocks(source.replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), 0);
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})\s+(\S.*)$/;
const RULE = /^ {0,3}([-*_])( *\1){2,} *$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)]) +(?=\S)/;

function blocks(lines: string[], depth: number): Block[] {
  const found: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const fence = FENCE.exec(line);
    if (fence) {
      const end = lines.findIndex((other, n) => n > at && other.trim().startsWith(fence[1]!));
      const stop = end < 0 ? lines.length : end;
      found.push({ kind: "code", text: lines.slice(at + 1, stop).join("\n") });
      at = stop + 1;
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      const title = heading[2]!.trimEnd();
      const bare = title.replace(/#+$/, "");
      found.push({ kind: "heading", level: heading[1]!.length, inside: inlines(bare.endsWith(" ") ? bare.trim() : title) });
      at += 1;
      continue;
    }
    if (RULE.test(line)) {
      found.push({ kind: "rule" });
      at += 1;
      continue;
    }
    if (depth < DEEPEST && QUOTE.test(line)) {
      const inside: string[] = [];
      while (at < lines.length && QUOTE.test(lines[at]!)) inside.push(lines[at++]!.replace(QUOTE, ""));
      found.push({ kind: "quote", inside: blocks(inside, depth + 1) });
      continue;
    }
    const item = depth < DEEPEST ? ITEM.exec(line) : null;
    if (item) {
      at = list(lines, at, item, depth, found);
      continue;
    }
    const paragraph: string[] = [];
    while (at < lines.length && lines[at]!.trim() && (paragraph.length === 0 || !interrupts(lines[at]!, depth))) {
      paragraph.push(lines[at++]!);
    }
    found.push({ kind: "paragraph", inside: inlines(paragraph.map((one) => one.trimStart()).join("\n")) });
  }
  return found;
}

function interrupts(line: string, depth: number): boolean {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || (depth < DEEPEST && (QUOTE.test(line) || ITEM.test(line)));
}

/** Reads the list that begins at `at` into `found`; answers the line behind it. */
function list(lines: string[], at: number, first: RegExpExecArray, depth: number, found: Block[]): number {
  const ordered = /\d/.test(first[2]!);
  const items: Block[][] = [];
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]!);
    if (!item || /\d/.test(item[2]!) !== ordered || RULE.test(lines[at]!)) break;
    const indent = item[0].length;
    const inside = [lines[at]!.slice(indent)];
    at += 1;
    while (at < lines.length) {
      const line = lines[at]!;
      const inner = line.length - line.trimStart().length >= Math.min(indent, 2);
      if (!line.trim()) {
        const next = lines[at + 1];
        if (next === undefined || !next.trim() || !/^ {2,}/.test(next)) break;
        inside.push("");
      } else if (inner) {
        inside.push(line.slice(Math.min(indent, line.length - line.trimStart().length)));
      } else if (!interrupts(line, depth) && inside[inside.length - 1]!.trim()) {
        inside.push(line); // a lazily continued paragraph
      } else break;
      at += 1;
    }
    items.push(blocks(inside, depth + 1));
    while (at < lines.length && !lines[at]!.trim() && ITEM.test(lines[at + 1] ?? "")) at += 1;
  }
  found.push({ kind: "list", ordered, start: ordered ? parseInt(first[2]!, 10) : 1, items });
  return at;
}

const PUNCTUATION = /[!-/:-@[-`{-~]/;

function inlines(source: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  const missing = new Set<string>(); // closing marks that do not occur any more: looking once is enough
  let plain = "";
  let at = 0;

  const closing = (mark: string, from: number): number => {
    if (missing.has(mark)) return -1;
    const where = source.indexOf(mark, from);
    if (where < 0) missing.add(mark);
    return where;
  };
  const add = (one: Inline, next: number): void => {
    if (plain) found.push({ kind: "text", text: plain });
    plain = "";
    found.push(one);
    at = next;
  };

  while (at < source.length) {
    const char = source[at]!;
    if (char === "\\" && PUNCTUATION.test(source[at + 1] ?? "")) {
      plain += source[at + 1];
      at += 2;
      continue;
    }
    if (char === "\n") {
      const hard = /(?: {2,}|\\)$/.test(plain);
      plain = plain.replace(/(?: +|\\)$/, "");
      if (hard) add({ kind: "break" }, at + 1);
      else {
        plain += "\n";
        at += 1;
      }
      continue;
    }
    if (char === "`") {
      const mark = /^`+/.exec(source.slice(at, at + 20))![0];
      const end = closing(mark, at + mark.length);
      if (end > 0) {
        add({ kind: "code", text: source.slice(at + mark.length, end).trim() }, end + mark.length);
        continue;
      }
    }
    if (depth < DEEPEST && (char === "*" || char === "_")) {
      const double = source[at + 1] === char;
      const mark = double ? char + char : char;
      const begin = at + mark.length;
      const inWord = char === "_" && /[\p{L}\p{N}]/u.test(source[at - 1] ?? "");
      let end = inWord || /\s/.test(source[begin] ?? " ") ? -1 : closing(mark, begin + 1);
      while (!double && end > 0 && source[end + 1] === char) end = closing(mark, end + 2); // strong inside emphasis
      const cleanEnd =
        end > 0 && !/\s/.test(source[end - 1]!) && !(char === "_" && /[\p{L}\p{N}]/u.test(source[end + mark.length] ?? ""));
      if (cleanEnd) {
        const inside = inlines(source.slice(begin, end), depth + 1);
        add({ kind: double ? "strong" : "em", inside }, end + mark.length);
        continue;
      }
      if (double) {
        plain += mark;
        at = begin;
        continue;
      }
    }
    if (char === "<") {
      const end = closing(">", at);
      const href = end > 0 ? safeAddress(source.slice(at + 1, end)) : null;
      if (href) {
        add({ kind: "link", href, inside: [{ kind: "text", text: source.slice(at + 1, end) }] }, end + 1);
        continue;
      }
    }
    const picture = char === "!" && source[at + 1] === "[";
    if (depth < DEEPEST && (char === "[" || picture)) {
      const open = picture ? at + 1 : at;
      const middle = closing("](", open);
      const end = middle > 0 ? closing(")", middle) : -1;
      if (end > 0) {
        const told = source.slice(open + 1, middle);
        const href = safeAddress(
          source
            .slice(middle + 2, end)
            .trim()
            .split(/\s/)[0]!,
        );
        if (picture) {
          add({ kind: "picture", alt: told }, end + 1);
          continue;
        }
        if (href) {
          add({ kind: "link", href, inside: inlines(told, DEEPEST) }, end + 1);
          continue;
        }
      }
    }
    plain += char;
    at += 1;
  }
  if (plain) found.push({ kind: "text", text: plain });
  return found;
}
