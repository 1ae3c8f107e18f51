import "./markdown.css";

import { defineComponent, h, type VNodeChild } from "vue";

import { parseMarkdown, type Block, type Inline } from "../markdown";

/** Markdown drawn as elements, never as HTML: markup in the source shows as text, and nothing is fetched. */
export default defineComponent({
  name: "MarkdownText",
  props: { source: { type: String, required: true }, level: { type: Number, default: 3 } },
  setup: (props) => () =>
    h(
      "div",
      { class: "markdown" },
      below(parseMarkdown(props.source), props.level),
    ),
});

/** The highest heading of a text stands directly below the page's own, whatever its writer began with. */
function below(blocks: Block[], level: number): VNodeChild[] {
  const highest = Math.min(...blocks.map((one) => (one.kind === "heading" ? one.level : 6)));
  return blocks.map((one) => block(one, level - highest + 1));
}

function block(one: Block, level: number): VNodeChild {
  switch (one.kind) {
    case "heading": // headings of the page stay above those of the guidelines
      return h(`h${Math.min(6, level + one.level - 1)}`, { dir: "auto" }, one.inside.map(inline));
    case "paragraph":
      return h("p", { dir: "auto" }, one.inside.map(inline));
    case "list": {
      const items = one.items.map((item) => {
        const only = item.length === 1 ? item[0]! : null;
        const tight = only?.kind === "paragraph" ? only.inside.map(inline) : item.map((inner) => block(inner, level));
        return h("li", { dir: "auto" }, tight);
      });
      return one.ordered ? h("ol", { start: one.start }, items) : h("ul", items);
    }
    case "quote":
      return h(
        "blockquote",
        one.inside.map((inner) => block(inner, level)),
      );
    case "code":
      return h("pre", { tabindex: 0 }, h("code", one.text));
    case "rule":
      return h("hr");
  }
}

function inline(one: Inline): VNodeChild {
  switch (one.kind) {
    case "text":
      return one.text;
    case "code":
      return h("code", one.text);
    case "strong":
    case "em":
      return h(one.kind, one.inside.map(inline));
    case "link":
      return h("a", { href: one.href, rel: "noopener noreferrer", target: "_blank" }, one.inside.map(inline));
    case "picture":
      return h("span", { class: "muted" }, `[picture, not loaded: ${one.alt}]`);
    case "break":
      return h("br");
  }
}
