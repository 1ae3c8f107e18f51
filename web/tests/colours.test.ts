import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

/** The colours of the style sheet, as they are written there: each once, light and dark. */
const css = readFileSync(resolve(import.meta.dirname, "../src/style.css"), "utf8");

type Colour = { rgb: [number, number, number]; alpha: number };

function parse(text: string): Colour {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text.trim());
  if (hex) return { rgb: [1, 2, 3].map((n) => parseInt(hex[n]!, 16)) as Colour["rgb"], alpha: 1 };
  const rgb = /^rgb\((\d+) (\d+) (\d+) \/ ([\d.]+)\)$/.exec(text.trim());
  if (!rgb) throw new Error(`not a colour: ${text}`);
  return { rgb: [1, 2, 3].map((n) => Number(rgb[n])) as Colour["rgb"], alpha: Number(rgb[4]) };
}

function token(name: string, theme: "light" | "dark"): Colour {
  const found = new RegExp(`--${name}: light-dark\\((.+)\\);`).exec(css);
  if (!found) throw new Error(`no token ${name}`);
  const [light, dark] = found[1]!.split(/,\s*(?=#|rgb)/);
  return parse(theme === "light" ? light! : dark!);
}

const blend = (over: Colour, under: Colour, share = 1): Colour => ({
  rgb: over.rgb.map((value, n) => value * over.alpha * share + under.rgb[n]! * (1 - over.alpha * share)) as Colour["rgb"],
  alpha: 1,
});
const linear = (value: number): number => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ({ rgb }: Colour): number => 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]);
function contrast(one: Colour, other: Colour): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high! + 0.05) / (low! + 0.05);
}

const themes = ["light", "dark"] as const;
const shares = Array.from({ length: 101 }, (_, n) => n / 100);

test.each(themes)("words stay readable at every strength of colour, %s", (theme) => {
  const surface = token("surface", theme);
  for (const side of ["for", "against"])
    for (const share of shares) expect(contrast(token("text", theme), blend(token(side, theme), surface, share))).toBeGreaterThanOrEqual(4.5);
});

test.each(themes)("text has a contrast of 4.5 to whatever it stands on, %s", (theme) => {
  for (const ground of ["page", "surface", "raised", "sunken"])
    for (const ink of ["text", "muted"]) expect([ground, ink, contrast(token(ink, theme), token(ground, theme)) >= 4.5]).toEqual([ground, ink, true]);
  for (const ground of ["surface", "raised", "page"])
    for (const ink of ["accent", "good", "bad", "warn"]) expect([ground, ink, contrast(token(ink, theme), token(ground, theme)) >= 4.5]).toEqual([ground, ink, true]);
  for (const ink of ["accent", "good", "bad", "warn"]) expect([ink, contrast(token(ink, theme), token(`${ink}-soft`, theme)) >= 4.5]).toEqual([ink, true]);
  for (const soft of ["accent-soft", "warn-soft", "bad-soft", "good-soft"]) expect([soft, contrast(token("text", theme), token(soft, theme)) >= 4.5]).toEqual([soft, true]);
  expect(contrast(token("muted", theme), token("accent-soft", theme))).toBeGreaterThanOrEqual(4.5);
  for (const ground of ["accent", "good", "bad"]) expect(contrast(token("on-accent", theme), token(ground, theme))).toBeGreaterThanOrEqual(4.5);
});

test.each(themes)("borders of controls, underlines and bars have a contrast of 3, %s", (theme) => {
  for (const ground of ["surface", "raised", "page"]) expect([ground, contrast(token("edge", theme), token(ground, theme)) >= 3]).toEqual([ground, true]);
  for (const line of ["for-line", "against-line", "bar-for", "bar-against"]) expect([line, contrast(token(line, theme), token("surface", theme)) >= 3]).toEqual([line, true]);
});

// Machado, Oliveira and Fernandes 2009, full severity, on linear RGB
const MACHADO: Record<string, number[][]> = {
  none: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

function lab({ rgb }: Colour, matrix: number[][]): number[] {
  const seen = rgb.map(linear);
  const [r, g, b] = matrix.map((row) => Math.min(1, Math.max(0, row.reduce((sum, weight, n) => sum + weight * seen[n]!, 0)))) as [number, number, number];
  const xyz = [0.4124 * r + 0.3576 * g + 0.1805 * b, 0.2126 * r + 0.7152 * g + 0.0722 * b, 0.0193 * r + 0.1192 * g + 0.9505 * b];
  const [x, y, z] = xyz.map((value, n) => value / [0.9505, 1, 1.089][n]!).map((value) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116)) as [number, number, number];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}
const distance = (one: Colour, other: Colour, matrix: number[][]): number => Math.hypot(...lab(one, matrix).map((value, n) => value - lab(other, matrix)[n]!));

test.each(Object.keys(MACHADO))("for and against can be told apart with any colour vision: %s", (vision) => {
  for (const theme of themes) {
    const surface = token("surface", theme);
    const strongest = ["for", "against"].map((side) => blend(token(side, theme), surface)) as [Colour, Colour];
    expect(distance(...strongest, MACHADO[vision]!)).toBeGreaterThanOrEqual(40);
  }
});
