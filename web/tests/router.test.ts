import { expect, test } from "vitest";

import { addressOf } from "../src/api";
import { safeNext } from "../src/router";

test.each(["//evil", "/\\evil", "https:evil", "https://evil", "javascript:alert(1)", "\\/evil", "", null, undefined, ["/a"], "evil"])("after signing in nobody is sent elsewhere: %s", (next) => {
  expect(safeNext(next)).toBe("/");
});

test("after signing in one is back at the same place", () => {
  expect(safeNext("/p/films/examples/12?word=a%2Fb")).toBe("/p/films/examples/12?word=a%2Fb");
});

test("addresses stay below the path at which a proxy shows the page", () => {
  const base = document.head.appendChild(document.createElement("base"));
  base.href = "http://hub.example/user/anna/proxy/8321/?x=1#/p/films";
  expect(addressOf("projects/a/examples", { word: "c&d", state: null, limit: 5 })).toBe("http://hub.example/user/anna/proxy/8321/api/projects/a/examples?word=c%26d&limit=5");
  base.remove();
});
