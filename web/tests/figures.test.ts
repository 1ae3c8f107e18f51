import { describe, expect, it } from "vitest";

import {
  agreementFigure,
  dayFigure,
  everyDay,
  labelFigure,
  median,
  plain,
  secondsFigure,
  secondSteps,
  type Ink,
} from "../src/figures";
import { answerKind, lasted } from "../src/words";

const INK: Ink = { text: "#111", muted: "#555", line: "#ccc", surface: "#fff", accent: "#05a", series: ["#1", "#2", "#3"] };
const drawn = (figure: { option: (ink: Ink) => object }): any => figure.option(INK);
const alpha = (kind: string, value: number | null, low: number | null, high: number | null) => ({
  kind,
  alpha: value,
  low,
  high,
  questions: 4,
  people: 2,
  note: "",
});

describe("agreement", () => {
  it("draws kinds where it is defined and lists the others", () => {
    const figure = agreementFigure([alpha("word_vote", 0.71, 0.6, 0.8), alpha("relabel", null, null, null)]);
    expect(drawn(figure).yAxis.axisLabel.formatter("0")).toBe("Votes on words");
    expect(drawn(figure).yAxis.data).toHaveLength(1);
    expect(figure.rows.map((row) => row[1])).toEqual(["0.71", "not defined"]);
    expect(figure.summary).toContain("Votes on words 0.71 (0.60 to 0.80)");
  });
  it("makes room for agreement below chance", () => {
    expect(drawn(agreementFigure([alpha("review", -0.3, -0.5, 0.1)])).xAxis.min).toBeLessThanOrEqual(-0.5);
    expect(drawn(agreementFigure([alpha("review", 0.3, 0.2, 0.4)])).xAxis.min).toBe(0);
  });
  it("lists the first kind on top, where the axis ends", () => {
    const figure = agreementFigure([alpha("a", 0.1, null, null), alpha("b", 0.2, null, null)]);
    expect(["0", "1"].map(drawn(figure).yAxis.axisLabel.formatter)).toEqual(["b", "a"]);
    expect(drawn(figure).tooltip.formatter({ dataIndex: 1 })).toContain("a 0.10");
  });
  it("says so when nothing is defined", () => {
    expect(agreementFigure([]).summary).toContain("not defined");
  });
});

describe("judgements a day", () => {
  it("leaves out no day between the first and the last", () => {
    expect(everyDay(["2026-03-01", "2026-02-27"])).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
    expect(everyDay([])).toEqual([]);
    expect(everyDay(["2020-01-01", "2026-01-01"])).toHaveLength(60);
  });
  it("adds up to what was counted, whatever the names", () => {
    const figure = dayFigure([
      ["2026-01-01", "__proto__", 3],
      ["2026-01-03", "constructor", 2],
      ["2026-01-03", "__proto__", 4],
    ]);
    expect(figure.head).toEqual(["Day", "__proto__", "constructor"]);
    expect(figure.rows).toEqual([
      ["2026-01-01", 3, 0],
      ["2026-01-02", 0, 0],
      ["2026-01-03", 4, 2],
    ]);
    expect(figure.summary).toContain("9 judgements in 3 days by 2 people; most on 2026-01-03 (6)");
  });
  it("keeps names from the library, which would set a prototype by one of them", () => {
    const days = dayFigure([
      ["2026-01-01", "__proto__", 1],
      ["2026-01-01", "b", 2],
    ]);
    expect(drawn(days).series.map((one: { name: string }) => one.name)).toEqual(["0", "1"]);
    expect(["0", "1"].map(drawn(days).legend.formatter)).toEqual(["b", "__proto__\u2060"]);
    const labels = labelFigure([["__proto__", 1]], 0);
    expect(drawn(labels).yAxis.data).toEqual(["0"]);
    expect(drawn(labels).yAxis.axisLabel.formatter("0")).toBe("__proto__\u2060");
  });
  it("puts the least busy people together", () => {
    const figure = dayFigure(Array.from({ length: 12 }, (_, n) => ["2026-01-01", `p${n}`, n + 1] as const));
    expect(figure.head).toHaveLength(9);
    expect(figure.head.at(-1)).toBe("5 others");
    expect(figure.rows[0]!.slice(1).reduce((sum: number, one) => sum + Number(one), 0)).toBe(78);
  });
  it("survives that nobody has judged", () => {
    expect(dayFigure([]).summary).toBe("Nobody has judged anything yet.");
    expect(drawn(dayFigure([])).series).toEqual([]);
  });
});

describe("seconds", () => {
  it("sorts times into steps, the longest into the last", () => {
    const steps = secondSteps([0, 9.9, 10, 179, 180, 9999]);
    expect([steps[0], steps[1], steps[17], steps[18]]).toEqual([2, 1, 1, 2]);
    expect(steps).toHaveLength(19);
  });
  it("knows the median", () => {
    expect([median([]), median([3]), median([4, 1]), median([9, 1, 5])]).toEqual([null, 3, 2.5, 5]);
  });
  it("compares with the paper only where whole examples are timed", () => {
    const told = (kind: string) => drawn(secondsFigure([20, 40], kind)).series[0].markLine.data.length;
    expect(told("review")).toBe(3);
    expect(told("word_vote")).toBe(1);
  });
});

describe("labels", () => {
  it("shows twenty and puts the rest together", () => {
    const figure = labelFigure(
      Array.from({ length: 500 }, (_, n) => [`l${n}`, 500 - n] as const),
      7,
    );
    expect(figure.rows).toHaveLength(22);
    expect(figure.rows[20]![0]).toBe("480 others");
    expect(figure.rows[21]).toEqual(["no label", 7, "0.0 %"]);
    expect(figure.rows.reduce((sum, row) => sum + Number(row[1]), 0)).toBe((500 * 501) / 2 + 7);
  });
  it("shows one more rather than a group of one", () => {
    expect(
      labelFigure(
        Array.from({ length: 21 }, (_, n) => [`l${n}`, 1] as const),
        0,
      ).rows,
    ).toHaveLength(21);
  });
  it("has nothing to divide by without examples", () => {
    expect(labelFigure([["a", 0]], 0).rows).toEqual([["a", 0, "–"]]);
  });
});

it("a name cannot be markup of the chart library, nor turn the line around", () => {
  expect(plain("{a|b}")).toBe("❴a∣b❵");
  expect(plain("a\u202Eb\nc")).toBe("a␣b␣c");
  for (const name of ["__proto__", "constructor", "toString"]) expect(plain(name) in {}).toBe(false);
  expect([...plain("😀".repeat(90))]).toHaveLength(40);
});

it("kinds of answers that the page does not know go by their names, even those that every object has", () => {
  expect([answerKind("word_vote"), answerKind("constructor"), answerKind("new_kind")]).toEqual([
    "Votes on words",
    "constructor",
    "new kind",
  ]);
});
it("measured times keep what was measured", () => {
  expect([1.24, 61, 600, 9000].map(lasted)).toEqual(["1.2 s", "61 s", "10 min", "2.5 h"]);
});
