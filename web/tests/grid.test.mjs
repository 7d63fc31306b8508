// A sweep's points as cells, and figures as steps of a colour.
import assert from "node:assert/strict";
import { test } from "node:test";

import { cells, indices } from "../src/grid_cells.js";
import { step } from "../src/palette.js";
import { planned } from "./sample.mjs";

const [grid] = planned.sections;

test("the last axis varies fastest", () => {
  assert.deepEqual(indices(grid.axes, 0), [0, 0, 0]);
  assert.deepEqual(indices(grid.axes, 1), [0, 0, 1]);
  assert.deepEqual(indices(grid.axes, 11), [2, 1, 1]);
});

test("a cell is the best of its points, whichever way is good", () => {
  const at = (metric, x, y) => cells(grid, metric, 0, 1).find((cell) => cell.x === x && cell.y === y);
  assert.equal(at(0, 0, 0).point, 1); // of points 0 and 1
  assert.equal(at(0, 1, 0).point, 4); // 5 runs out of memory
  assert.equal(at(0, 1, 1).point, 6); // 7 is refused
  assert.equal(at(1, 2, 1).point, 11); // the lowest time
  assert.equal(at(0, 2, 1).count, 2);
  assert.equal(cells(grid, 0, 2, 1).length, 4);
});

test("a cell none of whose points ran has no value", () => {
  const none = { ...grid, metrics: [{ ...grid.metrics[0], values: grid.metrics[0].values.map(() => null) }] };
  assert.ok(cells(none, 0, 0, 1).every(({ value }) => value === null));
});

test("steps of colour go from low to high", () => {
  assert.deepEqual([0, 0.5, 0.99, 1].map((value) => step(value, 0, 1)), [0, 3, 6, 6]);
  assert.equal(step(5, 5, 5), 5);
});
