// What the page of `stepcast serve` does with options, choices and requests, without a browser. docs/serve.md.
import assert from "node:assert/strict";
import { test } from "node:test";

import { asking } from "../src/live/asking.js";
import { chosen, difference, isFixed, optionName, reason, refusals, stopFor } from "../src/live/options.js";

const control = (...options) => ({ pointer: "/p/x", value: options[0].value, base: options[0].value, options });

test("options have names", () => {
  assert.deepEqual([true, false, 4, "all_but_matmul", "_HYBRID_SHARD_ZERO2"].map(optionName), ["on", "off", "4", "all_but_matmul", "_HYBRID_SHARD_ZERO2"]);
});

test("reasons are shown once, without what the page shows anyway", () => {
  const why = '--set: /p/x: belongs to "fsdp2"; leave it out';
  assert.equal(reason(why, "/p/x"), 'belongs to "fsdp2"; leave it out');
  assert.equal(reason("base.json: /q: is odd", "/p/x"), "base.json: /q: is odd");
  const some = control({ value: 1 }, { value: 2, refused: why }, { value: 3, refused: why }, { value: 4 });
  assert.deepEqual(refusals(some), [{ names: ["2", "3"], why: 'belongs to "fsdp2"; leave it out' }]);
  assert.equal(isFixed(some), false);
  assert.equal(isFixed(control({ value: 1 }, { value: 2, refused: why })), true);
});

test("a slider steps over what is refused, and stays where nothing is left", () => {
  const slider = control({ value: 1 }, { value: 2, refused: "no" }, { value: 4 }, { value: 8, refused: "no" });
  assert.equal(stopFor(slider, 0, 1), 2);
  assert.equal(stopFor(slider, 2, 1), 0);
  assert.equal(stopFor(slider, 2, 3), null);
  assert.equal(stopFor(slider, 0, 2), 2);
});

test("the newest choice comes last, and the scenario's own value is none", () => {
  const x = { pointer: "/x", base: 1 }, y = { pointer: "/y", base: "a" };
  let settings = chosen([], x, 2);
  settings = chosen(settings, y, "b");
  settings = chosen(settings, x, 3);
  assert.deepEqual(settings, [{ pointer: "/y", value: "b" }, { pointer: "/x", value: 3 }]);
  assert.deepEqual(chosen(settings, y, "a"), [{ pointer: "/x", value: 3 }]);
});

test("differences against the start", () => {
  assert.equal(difference(1.1, 1), "+10.0 %");
  assert.equal(difference(0.9, 1), "−10.0 %");
  assert.equal(difference(1.0001, 1), "");
  assert.equal(difference(undefined, 1), "");
});

test("one request at a time; of those that come meanwhile the newest; a failure is told and the next one sent", async () => {
  const sent = [], told = [];
  let settle;
  const ask = asking(
    (request) => {
      sent.push(request);
      return new Promise((resolve, reject) => (settle = { resolve, reject }));
    },
    (answer, request, busy) => told.push([answer, request, busy]),
    ({ message }, request) => told.push([message, request]),
  );
  const turn = () => new Promise((done) => setTimeout(done, 0));
  [1, 2, 3].forEach(ask);
  assert.deepEqual(sent, [1]);
  settle.resolve("one");
  await turn();
  assert.deepEqual(sent, [1, 3]);
  settle.reject(new Error("no"));
  await turn();
  ask(4);
  settle.resolve("four");
  await turn();
  assert.deepEqual(told, [["one", 1, true], ["no", 3], ["four", 4, false]]);
});
