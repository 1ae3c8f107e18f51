/** What the charts show: pure functions from what the server says to a figure that `parts/Chart.vue` can draw and say in words. */

import type { EChartsCoreOption } from "echarts/core";

import type { Palette } from "./parts/ChartBox.vue";
import { isMade, measureName } from "./report";
import type { Agreement, LossCurve, Measure } from "./types";
import { answerKind } from "./words";

type LossPoint = LossCurve["points"][number];

/** Colours of the theme in use, and those that tell series apart. */
export type Ink = Pick<Palette, "text" | "muted" | "line" | "accent" | "surface"> & { series: readonly string[] };

/** Colours that stay apart for colour-blind eyes and reach 3:1 against the ground of their theme. */
export const SERIES = {
  light: ["#0072b2", "#b97800", "#007a5a", "#b0408a", "#5e3c99", "#c14a00", "#3d7ea8", "#6b7280"],
  dark: ["#4aa3df", "#e69f00", "#35c497", "#e08fc0", "#a993e0", "#f08a4b", "#9fd3f5", "#9ca3af"],
} as const;

export interface Figure {
  title: string;
  summary: string; // one or two sentences that say what one would see
  head: readonly string[];
  rows: readonly (readonly (string | number)[])[];
  height: number; // in pixels
  option: (ink: Ink) => EChartsCoreOption;
}

/**
 * A name, from data or people, as it may be handed to the chart library. To that, braces and bars are markup, which it
 * swallows; and its cache of text widths is a plain object: a text called `__proto__` or `constructor` would write
 * into the prototype of all objects.
 */
export function plain(name: string, longest = 40): string {
  const harmless = name
    .replace(/[{}|]/g, (one) => ({ "{": "❴", "}": "❵", "|": "∣" })[one]!)
    .replace(/[\u0000-\u001f\u202a-\u202e\u2066-\u2069]/g, "␣");
  const letters = [...harmless];
  if (harmless in {}) return `${harmless}\u2060`; // not seen, and no longer the name of something that every object has
  return letters.length > longest ? letters.slice(0, longest - 1).join("") + "…" : harmless;
}

const tooltip = (ink: Ink, formatter: (at: { dataIndex: number; seriesIndex: number }) => string) => ({
  renderMode: "richText", // an HTML tooltip would need inline styles, which the page's policy forbids
  trigger: "item",
  confine: true,
  backgroundColor: ink.surface,
  borderColor: ink.line,
  textStyle: { color: ink.text, fontSize: 13 },
  formatter: (at: unknown) => formatter(at as { dataIndex: number; seriesIndex: number }),
});

const axis = (ink: Ink) => ({
  axisLine: { lineStyle: { color: ink.line } },
  axisTick: { lineStyle: { color: ink.line } },
  axisLabel: { color: ink.muted, fontSize: 12 },
  nameTextStyle: { color: ink.muted, fontSize: 12 },
  splitLine: { lineStyle: { color: ink.line, opacity: 0.5 } },
});

/** The library keeps names as keys of plain objects, where one called `__proto__` breaks the page: it gets numbers. */
const numbered = (all: readonly unknown[]): string[] => all.map((_, n) => String(n));

const two = (value: number) => value.toFixed(2);

/** Krippendorff's alpha for each kind where it is defined: a dot and its interval. */
export function agreementFigure(all: readonly Agreement[]): Figure {
  const known = all.filter((one) => one.alpha !== null).reverse(); // the chart counts from the bottom
  const lowest = Math.min(0, ...known.map((one) => one.low ?? one.alpha!));
  const told = [...known]
    .reverse()
    .map(
      (one) =>
        `${answerKind(one.kind)} ${two(one.alpha!)}${one.low === null || one.high === null ? "" : ` (${two(one.low)} to ${two(one.high)})`}`,
    );
  return {
    title: "Agreement by kind of answer",
    summary: known.length
      ? `Krippendorff's alpha with its 95 % interval: ${told.join("; ")}.`
      : "Agreement is not defined for any kind of answer yet.",
    head: ["Kind of answer", "Alpha", "From", "To", "Questions", "People"],
    rows: all.map((one) => [
      answerKind(one.kind),
      one.alpha === null ? "not defined" : two(one.alpha),
      one.low === null ? "–" : two(one.low),
      one.high === null ? "–" : two(one.high),
      one.questions,
      one.people,
    ]),
    height: 100 + 46 * known.length,
    option: (ink) => ({
      grid: { left: 8, right: 24, top: 40, bottom: 8, containLabel: true },
      tooltip: tooltip(ink, ({ dataIndex }) => told[told.length - 1 - dataIndex] ?? ""),
      xAxis: {
        type: "value",
        min: Math.floor(lowest * 5) / 5,
        max: 1,
        ...axis(ink),
        axisLabel: { color: ink.muted, fontSize: 12, hideOverlap: true },
      },
      yAxis: {
        type: "category",
        data: numbered(known),
        ...axis(ink),
        axisLabel: {
          color: ink.text,
          fontSize: 13,
          interval: 0,
          lineHeight: 15,
          width: 100,
          overflow: "break",
          formatter: (n: string) => plain(answerKind(known[Number(n)]!.kind)),
        },
      },
      series: [
        ...known.map((one, n) => ({
          type: "line", // the interval; its ends are the symbols
          data: [
            [one.low ?? one.alpha!, n],
            [one.high ?? one.alpha!, n],
          ],
          symbol: "rect",
          symbolSize: [2, 14],
          itemStyle: { color: ink.accent },
          lineStyle: { color: ink.accent, width: 2 },
          silent: true,
          z: 2,
        })),
        {
          type: "scatter",
          symbolSize: 13,
          itemStyle: { color: ink.accent, borderColor: ink.surface, borderWidth: 2 },
          data: known.map((one, n) => [one.alpha!, n]),
          z: 3,
          markLine: {
            silent: true,
            symbol: "none",
            lineStyle: { color: ink.muted, type: "dashed" },
            label: {
              color: ink.muted,
              fontSize: 11,
              formatter: (at: { value: number }) => (at.value === 0 ? "chance" : String(at.value)),
            },
            data: [{ xAxis: 0 }, { xAxis: 0.67 }, { xAxis: 0.8, label: { distance: [0, 18] } }], // the last two are close: one above the other
          },
        },
      ],
    }),
  };
}

const MOST_PEOPLE = 7;
const MOST_DAYS = 60;

/** The days from the first to the last, none left out: a gap is a day without judgements. Days are `YYYY-MM-DD`. */
export function everyDay(days: readonly string[]): string[] {
  const sorted = [...new Set(days)].sort();
  if (sorted.length === 0) return [];
  const last = Date.parse(`${sorted[sorted.length - 1]}T00:00:00Z`);
  const day = 86_400_000;
  const first = Math.max(Date.parse(`${sorted[0]}T00:00:00Z`), last - (MOST_DAYS - 1) * day);
  if (Number.isNaN(first) || Number.isNaN(last)) return sorted;
  return Array.from({ length: Math.round((last - first) / day) + 1 }, (_, n) =>
    new Date(first + n * day).toISOString().slice(0, 10),
  );
}

/** Judgements a day, one colour and pattern for each person; the least busy are put together. */
export function dayFigure(byDay: readonly (readonly [string, string, number])[]): Figure {
  const days = everyDay(byDay.map(([day]) => day));
  const shown = byDay.filter(([day]) => day >= (days[0] ?? ""));
  const totals = new Map<string, number>();
  for (const [, who, count] of shown) totals.set(who, (totals.get(who) ?? 0) + count);
  const busiest = [...totals].sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0])).map(([who]) => who);
  const named = busiest.length > MOST_PEOPLE + 1 ? busiest.slice(0, MOST_PEOPLE) : busiest;
  const others = busiest.length - named.length;
  const groups = [...named, ...(others ? [`${others} others`] : [])];
  const place = new Map(days.map((day, n) => [day, n]));
  const counts = groups.map(() => days.map(() => 0));
  for (const [day, who, count] of shown) {
    const group = named.indexOf(who);
    counts[group < 0 ? groups.length - 1 : group]![place.get(day)!]! += count;
  }
  const all = [...totals.values()].reduce((sum, one) => sum + one, 0);
  const perDay = days.map((_, n) => counts.reduce((sum, one) => sum + one[n]!, 0));
  const best = perDay.indexOf(Math.max(...perDay));
  return {
    title: "Judgements a day",
    summary: days.length
      ? `${all.toLocaleString("en")} judgements in ${days.length === 1 ? "one day" : `${days.length} days`} by ${busiest.length === 1 ? "one person" : `${busiest.length} people`}; most on ${days[best]} (${perDay[best]}).`
      : "Nobody has judged anything yet.",
    head: ["Day", ...groups],
    rows: days.map((day, n) => [day, ...counts.map((one) => one[n]!)]),
    height: 280,
    option: (ink) => ({
      aria: { enabled: true, label: { enabled: false }, decal: { show: groups.length > 1 } },
      color: [...ink.series],
      grid: { left: 8, right: 16, top: groups.length > 1 ? 44 : 16, bottom: 8, containLabel: true },
      legend:
        groups.length > 1
          ? {
              type: "scroll",
              top: 0,
              textStyle: { color: ink.text },
              pageIconColor: ink.text,
              pageTextStyle: { color: ink.text },
              formatter: (n: string) => plain(groups[Number(n)] ?? "", 20),
            }
          : undefined,
      tooltip: tooltip(
        ink,
        ({ dataIndex, seriesIndex }) =>
          `${days[dataIndex]}\n${plain(groups[seriesIndex] ?? "")}: ${counts[seriesIndex]?.[dataIndex] ?? 0}`,
      ),
      xAxis: {
        type: "category",
        data: days,
        ...axis(ink),
        axisLabel: { color: ink.muted, fontSize: 12, hideOverlap: true, formatter: (day: string) => day.slice(5) },
      },
      yAxis: { type: "value", minInterval: 1, ...axis(ink) },
      series: groups.map((_, n) => ({ type: "bar", stack: "all", name: String(n), data: counts[n]!, barMaxWidth: 40 })),
    }),
  };
}

export const SECONDS_STEP = 10;
export const SECONDS_MOST = 180;

export function median(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** How many took 0–10 s, 10–20 s …; the last step holds everything longer. */
export function secondSteps(values: readonly number[]): number[] {
  const steps = Array.from({ length: SECONDS_MOST / SECONDS_STEP + 1 }, () => 0);
  for (const value of values) steps[Math.min(steps.length - 1, Math.max(0, Math.floor(value / SECONDS_STEP)))]! += 1;
  return steps;
}

/** Time for one judgement, with our median and, for whole examples, the two figures of the XMD paper. */
export function secondsFigure(values: readonly number[], kind: string): Figure {
  const steps = secondSteps(values);
  const ours = median(values);
  const name = (n: number) =>
    n === steps.length - 1 ? `${SECONDS_MOST} s and longer` : `${n * SECONDS_STEP} to ${(n + 1) * SECONDS_STEP} s`;
  const marks = [
    ...(ours === null ? [] : [{ at: ours, told: `median ${Math.round(ours)} s` }]),
    ...(kind === "review"
      ? [
          { at: 60, told: "paper 60 s" },
          { at: 110, told: "labels 110 s" },
        ]
      : []),
  ].filter((one) => one.at <= SECONDS_MOST + SECONDS_STEP);
  return {
    title: "Time for one judgement",
    summary:
      ours === null
        ? "No times have been recorded yet."
        : `${values.length.toLocaleString("en")} times; half of them are below ${Math.round(ours)} seconds.`,
    head: ["Time", "Judgements"],
    rows: steps.map((count, n) => [name(n), count]).filter(([, count]) => count !== 0),
    height: 260,
    option: (ink) => ({
      grid: { left: 8, right: 24, top: 48, bottom: 28, containLabel: true },
      tooltip: tooltip(ink, ({ dataIndex }) => `${name(dataIndex)}\n${steps[dataIndex] ?? 0} judgements`),
      xAxis: {
        type: "value",
        min: 0,
        max: SECONDS_MOST + SECONDS_STEP,
        interval: 30,
        name: "seconds",
        nameLocation: "middle",
        nameGap: 28,
        ...axis(ink),
        splitLine: { show: false },
        axisLabel: {
          color: ink.muted,
          fontSize: 12,
          hideOverlap: true,
          formatter: (at: number) => (at === SECONDS_MOST ? `${at}+` : at > SECONDS_MOST ? "" : String(at)),
        },
      },
      yAxis: { type: "value", minInterval: 1, ...axis(ink) },
      series: [
        {
          type: "bar",
          barWidth: "90%",
          itemStyle: { color: ink.series[0] },
          data: steps.map((count, n) => [n * SECONDS_STEP + SECONDS_STEP / 2, count]),
          markLine: {
            silent: true,
            symbol: "none",
            data: marks.map((one, n) => ({
              xAxis: one.at,
              lineStyle: {
                color: n === 0 && ours !== null ? ink.accent : ink.muted,
                type: n === 0 && ours !== null ? "solid" : "dashed",
                width: 2,
              },
              label: { formatter: one.told, color: ink.text, fontSize: 11, distance: [0, 4 + 14 * (n % 2)] },
            })),
          },
        },
      ],
    }),
  };
}

const MOST_LABELS = 20;

/** Examples of each label: the most frequent, the rest in one bar, and those without a label. */
export function labelFigure(labels: readonly (readonly [string, number])[], unlabelled: number): Figure {
  const sorted = [...labels].sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0]));
  const rest = sorted.length > MOST_LABELS + 1 ? sorted.slice(MOST_LABELS) : [];
  const bars: { name: string; count: number; apart: boolean }[] = sorted
    .slice(0, sorted.length - rest.length)
    .map(([name, count]) => ({ name, count, apart: false }));
  if (rest.length)
    bars.push({ name: `${rest.length} others`, count: rest.reduce((sum, [, count]) => sum + count, 0), apart: true });
  if (unlabelled) bars.push({ name: "no label", count: unlabelled, apart: true });
  const all = bars.reduce((sum, one) => sum + one.count, 0);
  const share = (count: number) => (all === 0 ? "–" : `${((100 * count) / all).toFixed(1)} %`);
  const most = sorted[0];
  const upward = [...bars].reverse();
  return {
    title: "Examples of each label",
    summary: most
      ? `${sorted.length === 1 ? "One label" : `${sorted.length} labels`} over ${all.toLocaleString("en")} examples; the most frequent is “${plain(most[0])}” with ${share(most[1])}.`
      : "No example has a label.",
    head: ["Label", "Examples", "Share"],
    rows: bars.map((one) => [one.name, one.count, share(one.count)]),
    height: 40 + 28 * Math.max(1, bars.length),
    option: (ink) => ({
      grid: { left: 8, right: 64, top: 8, bottom: 8, containLabel: true },
      tooltip: tooltip(
        ink,
        ({ dataIndex }) =>
          `${plain(upward[dataIndex]?.name ?? "")}\n${upward[dataIndex]?.count.toLocaleString("en")} examples, ${share(upward[dataIndex]?.count ?? 0)}`,
      ),
      xAxis: { type: "value", minInterval: 1, ...axis(ink), axisLabel: { color: ink.muted, fontSize: 12, hideOverlap: true } },
      yAxis: {
        type: "category",
        data: numbered(upward),
        ...axis(ink),
        axisTick: { show: false },
        axisLabel: {
          color: ink.text,
          fontSize: 12,
          interval: 0,
          width: 110,
          overflow: "truncate",
          formatter: (n: string) => plain(upward[Number(n)]!.name, 20),
        },
      },
      series: [
        {
          type: "bar",
          barMaxWidth: 20,
          data: upward.map((one) => ({ value: one.count, itemStyle: { color: one.apart ? ink.muted : ink.series[0] } })),
          label: {
            show: true,
            position: "right",
            color: ink.text,
            formatter: (at: { dataIndex: number }) => (upward[at.dataIndex]?.count ?? 0).toLocaleString("en"),
          },
        },
      ],
    }),
  };
}

/** How a training goes: the loss on the task, and what the explanations still lack, step by step. */
export function lossFigure(points: readonly LossPoint[]): Figure {
  const extra = points.some((one) => one.extra !== null);
  const small = (value: number) => String(Number(value.toPrecision(3)));
  const first = points[0];
  const last = points[points.length - 1];
  const told = (name: string, from: number | null, to: number | null) => (from === null || to === null ? "" : ` ${name} from ${small(from)} to ${small(to)};`);
  const moved = first && last ? `${told("task loss", first.task, last.task)}${told("explanation loss", points.find((one) => one.extra !== null)?.extra ?? null, last.extra)}`.replace(/;$/, ".") : "";
  const line = (ink: Ink, n: number, data: (number | null)[][]) => ({
    type: "line",
    name: String(n),
    yAxisIndex: n,
    data,
    connectNulls: true,
    showSymbol: points.length < 30,
    symbol: n ? "diamond" : "circle",
    symbolSize: 7,
    itemStyle: { color: ink.series[n] },
    lineStyle: { color: ink.series[n], width: 2, type: n ? "dashed" : "solid" },
  });
  const losses = ["Task loss", "Explanation loss"] as const;
  const side = (ink: Ink, n: number) => ({
    type: "value",
    scale: true,
    min: 0,
    ...axis(ink),
    splitLine: { show: n === 0, lineStyle: { color: ink.line, opacity: 0.5 } },
    axisLabel: { color: ink.muted, fontSize: 12, hideOverlap: true, formatter: (value: number) => small(value) },
  });
  return {
    title: "Losses of this training",
    summary: last ? `Up to step ${last.step.toLocaleString("en")}:${moved}` : "No step has been finished yet.",
    head: extra ? ["Step", ...losses] : ["Step", losses[0]],
    rows: points.map((one) => [one.step, small(one.task), ...(extra ? [one.extra === null ? "–" : small(one.extra)] : [])]),
    height: 240,
    option: (ink) => ({
      animation: false, // it is drawn anew every other second
      grid: { left: 8, right: extra ? 8 : 24, top: 36, bottom: 28, containLabel: true },
      legend: { top: 0, left: 0, textStyle: { color: ink.text }, itemWidth: 28, formatter: (n: string) => `${losses[Number(n)] ?? ""}${extra ? (n === "0" ? " (left)" : " (right)") : ""}` },
      tooltip: tooltip(ink, ({ dataIndex, seriesIndex }) => {
        const point = points[dataIndex];
        const value = seriesIndex ? point?.extra : point?.task;
        return point ? `step ${point.step}\n${losses[seriesIndex] ?? ""}: ${value === null || value === undefined ? "–" : small(value)}` : "";
      }),
      xAxis: { type: "value", name: "step", nameLocation: "middle", nameGap: 26, minInterval: 1, max: "dataMax", ...axis(ink), splitLine: { show: false }, axisLabel: { color: ink.muted, fontSize: 12, hideOverlap: true } },
      yAxis: extra ? [side(ink, 0), side(ink, 1)] : [side(ink, 0)],
      series: [line(ink, 0, points.map((one) => [one.step, one.task])), ...(extra ? [line(ink, 1, points.map((one) => [one.step, one.extra]))] : [])],
    }),
  };
}

const SYMBOLS = ["circle", "diamond", "triangle", "rect", "pin", "arrow"] as const;
const LINES = ["solid", "dashed", "dotted"] as const;

/** What more strength buys and costs: one measure on every set, at each strength that was tried. */
export function tradeOffFigure(sweep: readonly { strength: number; own: boolean; measures: readonly Measure[] }[], name: string): Figure {
  const sets = [...new Set(sweep.flatMap(({ measures }) => measures.filter((one) => one.name === name && !one.slice && !isMade(one.data)).map((one) => one.data)))];
  const values = sets.map((data) => sweep.map(({ measures }) => measures.find((one) => one.name === name && one.data === data && !one.slice)?.after ?? null));
  const share = values.flat().every((value) => value === null || (value >= 0 && value <= 1));
  const known = values.flat().filter((value) => value !== null);
  const close = Math.max(...known) - Math.min(...known) < 0.05; // then whole percents would repeat along the axis
  const told = (value: number | null) => (value === null ? "–" : share ? `${(100 * value).toFixed(1)} %` : String(Number(value.toPrecision(3))));
  const best = sets.map((_, n) => {
    const tried = values[n]!.flatMap((value, at) => (value === null ? [] : [{ value, at }]));
    const high = tried.sort((one, other) => other.value - one.value)[0];
    return high ? `on ${plain(sets[n]!)} ${told(high.value)} at ${sweep[high.at]!.strength}` : "";
  });
  const measured = measureName(name);
  return {
    title: `${measured} by strength`,
    summary: `Highest ${measured}: ${best.filter(Boolean).join("; ")}. Strengths tried: ${sweep.map((one) => (one.own ? `${one.strength} (this fix)` : one.strength)).join(", ")}.`,
    head: ["Strength", ...sets],
    rows: sweep.map(({ strength, own }, at) => [own ? `${strength} (this fix)` : strength, ...values.map((one) => told(one[at] ?? null))]),
    height: 280,
    option: (ink) => ({
      color: [...ink.series],
      grid: { left: 8, right: 24, top: 44, bottom: 28, containLabel: true },
      legend: { type: "scroll", top: 0, textStyle: { color: ink.text }, itemWidth: 28, pageIconColor: ink.text, pageTextStyle: { color: ink.text }, formatter: (n: string) => plain(sets[Number(n)] ?? "", 24) },
      tooltip: tooltip(ink, ({ dataIndex, seriesIndex }) => `strength ${sweep[dataIndex]?.strength ?? ""}\n${plain(sets[seriesIndex] ?? "")}: ${told(values[seriesIndex]?.[dataIndex] ?? null)}`),
      xAxis: { type: "category", data: numbered(sweep), name: "strength", nameLocation: "middle", nameGap: 26, boundaryGap: true, ...axis(ink), axisLabel: { color: ink.muted, fontSize: 12, interval: 0, formatter: (n: string) => `${sweep[Number(n)]?.strength ?? ""}${sweep[Number(n)]?.own ? " ★" : ""}` } },
      yAxis: { type: "value", scale: true, ...axis(ink), axisLabel: { color: ink.muted, fontSize: 12, formatter: (value: number) => (share ? `${(100 * value).toFixed(close ? 1 : 0)} %` : String(value)) } },
      series: sets.map((_, n) => ({
        type: "line", name: String(n), data: values[n]!, symbol: SYMBOLS[n % SYMBOLS.length], symbolSize: 10, connectNulls: true,
        lineStyle: { width: 2, type: LINES[n % LINES.length] },
      })),
    }),
  };
}
