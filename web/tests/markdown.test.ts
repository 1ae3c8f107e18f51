import { mount } from "@vue/test-utils";
import { describe, expect, it } from "vitest";

import { parseMarkdown, safeAddress } from "../src/markdown";
import Markdown from "../src/parts/Markdown";

const PAYLOADS = [
  "<img src=x onerror=alert(1)>",
  "<script>alert(1)</script>",
  '"><svg onload=alert(1)>',
  "javascript:alert(1)",
  "{{7*7}}",
  "${7*7}",
  "</script>",
  "\u2028",
  "</title>",
  "<!--",
  '"unclosed',
  "'unclosed",
  "\x1b]0;x\x07",
  "\u202Eevil",
  "\u200B".repeat(5000),
];
const ALLOWED = new Set([
  "DIV",
  "P",
  "UL",
  "OL",
  "LI",
  "H3",
  "H4",
  "CODE",
  "PRE",
  "STRONG",
  "EM",
  "BLOCKQUOTE",
  "A",
  "BR",
  "SPAN",
  "HR",
]);

const draw = (source: string) => mount(Markdown, { props: { source } }).element as HTMLElement;

function everything(root: HTMLElement): Element[] {
  return [root, ...root.querySelectorAll("*")];
}

describe("guidelines are shown, never run", () => {
  const wraps: [string, (payload: string) => string][] = [
    ["alone", (p) => p],
    ["in a heading", (p) => `# ${p}`],
    ["in a list", (p) => `- ${p}\n- b`],
    ["in bold", (p) => `**${p}**`],
    ["in code", (p) => "`" + p + "`"],
    ["in a fence", (p) => "```" + p + "\n" + p + "\n```"],
    ["in a quote", (p) => `> ${p}`],
    ["as the text of a link", (p) => `[${p}](https://example.org)`],
    ["as the target of a link", (p) => `[here](${p})`],
    ["as a reference between angles", (p) => `<${p}>`],
    ["as a picture", (p) => `![${p}](${p})`],
  ];
  it.each(wraps)("a payload %s makes no element of its own", (_, wrap) => {
    for (const payload of PAYLOADS) {
      for (const element of everything(draw(wrap(payload)))) {
        expect(ALLOWED).toContain(element.tagName);
        for (const { name } of [...element.attributes])
          expect(["class", "dir", "href", "rel", "target", "tabindex", "start"]).toContain(name);
        const href = element.getAttribute("href");
        if (href !== null) expect(href).toMatch(/^(https?:\/\/|mailto:)/);
      }
    }
  });

  it("the payload can be read as it was written", () => {
    for (const payload of PAYLOADS.filter((one) => one.trim())) expect(draw(payload).textContent).toContain(payload.trim());
  });

  it("only http, https and mailto are links", () => {
    for (const bad of [
      "javascript:alert(1)",
      "JaVaScRiPt:alert(1)",
      " javascript:alert(1)",
      "java\nscript:alert(1)",
      "data:text/html,x",
      "vbscript:x",
      "//evil.example",
      "/local",
      "#/x",
      "file:///etc/passwd",
      "https:evil",
      "blob:https://x/y",
      "\u0001javascript:x",
      "https://a b",
      "",
    ])
      expect(safeAddress(bad), bad).toBeNull();
    expect(safeAddress("https://example.org/a?b=c#d")).toBe("https://example.org/a?b=c#d");
    expect(safeAddress("MAILTO:a@example.org")).toBe("mailto:a@example.org");
  });

  it("links open apart and tell the other site nothing", () => {
    const link = draw("[a](https://example.org/)").querySelector("a")!;
    expect(link.rel).toBe("noopener noreferrer");
    expect(link.target).toBe("_blank");
  });

  it("pictures are named, not loaded", () => {
    const drawn = draw("see ![a chart](https://example.org/x.png)");
    expect(drawn.querySelector("img")).toBeNull();
    expect(drawn.textContent).toContain("a chart");
  });
});

describe("what Markdown can say", () => {
  it("headings begin below those of the page", () => {
    expect(draw("# One\n\n## Two").innerHTML).toBe('<h3 dir="auto">One</h3><h4 dir="auto">Two</h4>');
  });
  it("paragraphs, emphasis, code and hard breaks", () => {
    expect(draw("a *b* **c** `d*e*`  \nf\n\n_g_ h_i_j").innerHTML).toBe(
      '<p dir="auto">a <em>b</em> <strong>c</strong> <code>d*e*</code><br>f</p><p dir="auto"><em>g</em> h_i_j</p>',
    );
  });
  it("strong inside emphasis", () => {
    expect(draw("*a **b** c*").innerHTML).toBe('<p dir="auto"><em>a <strong>b</strong> c</em></p>');
  });
  it("lists in lists, and lists that begin at another number", () => {
    expect(draw("3. a\n   - b\n   - c\n4. d").innerHTML).toBe(
      '<ol start="3"><li dir="auto"><p dir="auto">a</p><ul><li dir="auto">b</li><li dir="auto">c</li></ul></li><li dir="auto">d</li></ol>',
    );
  });
  it("a list ends where a paragraph begins", () => {
    expect(parseMarkdown("- a\n- b\n\nc").map((one) => one.kind)).toEqual(["list", "paragraph"]);
  });
  it("fences keep their lines", () => {
    expect(parseMarkdown("```\n# a\n\n<b>\n```\nc")).toEqual([
      { kind: "code", text: "# a\n\n<b>" },
      { kind: "paragraph", inside: [{ kind: "text", text: "c" }] },
    ]);
  });
  it("marks that never close are text", () => {
    for (const odd of ["**a", "*a", "`a", "[a](b", "[a", "![", "<", "\\", "_", "***"])
      expect(draw(`x ${odd}`).textContent).toBe(`x ${odd}`);
  });
  it("a backslash makes a mark plain", () => {
    expect(draw("\\*a\\*").textContent).toBe("*a*");
  });
  it("nothing is lost of the longest guidelines made of marks alone", () => {
    for (const mark of ["*", "**a", "[", "![", "`", "<", "> ", "- ", "_a", "[a](", "#", "~~~\n", "1. a\n"])
      expect(parseMarkdown(mark.repeat(Math.floor(20_000 / mark.length))).length).toBeGreaterThan(0);
  });
});
