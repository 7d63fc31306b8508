// Figures as people read them.
import assert from "node:assert/strict";
import { test } from "node:test";

import { summary } from "../src/errors.js";
import { bytes, count, figure, percent, rate, time, words } from "../src/format.js";
import { steps } from "../src/waterfall_steps.js";

test("times, bytes, shares and counts", () => {
  assert.equal(time(6.70123), "6.701 s");
  assert.equal(time(0.2514), "251.4 ms");
  assert.equal(time(1.5e-5), "15 µs");
  assert.equal(time(2e-9), "2 ns");
  assert.equal(time(0), "0 s");
  assert.equal(time(-0.5), "-500 ms");
  assert.equal(bytes(73.82 * 2 ** 30), "73.82 GiB");
  assert.equal(bytes(512), "512 B");
  assert.equal(percent(0.735), "73.5 %");
  assert.equal(count(4890.4), "4,890");
  assert.equal(figure(null, "s"), "–");
  assert.equal(figure(0.5, "share"), "50.0 %");
  assert.equal(rate(312.44e12, "FLOP/s"), "312.4 TFLOP/s");
  assert.equal(rate(512, "B/s"), "512 B/s");
  assert.equal(figure(230e9, "B/s"), "230 GB/s");
  assert.equal(words("gap_all_gather"), "all-gather");
  assert.equal(words("reduce_scatter"), "reduce-scatter");
});

test("a waterfall's steps go from 1 down to what is left", () => {
  const section = { step_time_s: 10, losses: [{ loss: "a", seconds: -1 }, { loss: "b", seconds: 4 }, { loss: "c", seconds: 2 }] };
  assert.deepEqual(steps(section).map(({ before, left }) => [before, left].map((share) => share.toFixed(2))), [["1.00", "1.10"], ["1.10", "0.70"], ["0.70", "0.50"]]);
});

test("errors in short: sizes interpolated between ranks, the bias with its sign", () => {
  const { median, mean, largest, bias } = summary([0.1, -0.3, 0.2, 0.0]);
  for (const [is, should] of [[median, 0.15], [mean, 0.15], [largest, 0.3], [bias, 0.05]]) assert.ok(Math.abs(is - should) < 1e-12);
  assert.equal(summary([-0.2]).bias, -0.2);
});
