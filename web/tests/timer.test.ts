import { expect, test } from "vitest";

import { makeTimer } from "../src/timer";

function clocked() {
  let time = 0;
  const timer = makeTimer(() => time);
  const pass = (seconds: number): void => void (time += seconds * 1000);
  return { timer, pass };
}

test("time passes while somebody looks", () => {
  const { timer, pass } = clocked();
  pass(12);
  expect(timer.total()).toBe(12);
});

test("time stands still while the page is hidden", () => {
  const { timer, pass } = clocked();
  pass(5);
  timer.visible(false);
  pass(600);
  timer.visible(true);
  pass(3);
  expect(timer.total()).toBe(8);
});

test("a minute without a sign of life is the most that counts at once", () => {
  const { timer, pass } = clocked();
  pass(10);
  timer.touch();
  pass(3600);
  timer.touch();
  pass(4);
  expect(timer.total()).toBe(74);
});

test("laps add up to the total", () => {
  const { timer, pass } = clocked();
  pass(7);
  const first = timer.lap();
  pass(4);
  const second = timer.lap();
  expect([first, second]).toEqual([7, 4]);
  expect(timer.total()).toBe(11);
});

test("each example begins at nought", () => {
  const { timer, pass } = clocked();
  pass(30);
  timer.start();
  pass(2);
  expect(timer.total()).toBe(2);
  expect(timer.lap()).toBe(2);
});

test("a clock that goes back takes nothing away", () => {
  const { timer, pass } = clocked();
  pass(5);
  timer.touch();
  pass(-100);
  expect(timer.total()).toBe(5);
});
