// The page of `stepcast serve` in headless Chromium: what it shows is what `stepcast run` says of the same settings, refusals are explained, and it can be used by keyboard,
// at any width, in both colour schemes. docs/serve.md.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";

import { accessibilityFaults, all, binary, clean, launch, missing, one } from "./browser.mjs";
import { followed, openServed, serving } from "./serving.mjs";

let why = missing;
let browser, server;
const small = ["--set", "/model/layers=4", "--set", "/run/steps=3"];
const start = ["7b-32xa100", ...small];

if (!why) {
  server = await serving(binary, ...start);
  if (!server.url) why = `skipped: this build doesn't serve: ${server.said.trim()}`;
}
if (why) console.log(why);
const options = { skip: why ?? false, timeout: 240_000 };

before(async () => (browser = why ? null : await launch()));
after(async () => {
  await browser?.close();
  if (server?.url) assert.equal(await server.stop(), 0);
  clean();
});

const run = (...sets) => JSON.parse(execFileSync(binary, ["run", ...start, ...sets.flatMap((set) => ["--set", set]), "--json"], { encoding: "utf8" }));
const tiles = (page) => all(page, ".tile", (all) => Object.fromEntries(all.map((tile) => [tile.querySelector("dt").textContent, tile.querySelector("strong").textContent])));
const command = (page) => one(page, ".command code", (code) => code.textContent);
const tokens = (report) => Math.round(report.tokens_per_s_per_gpu).toLocaleString("en-US");
const settled = (page, text) => page.waitForFunction((part) => document.querySelector(".command code").textContent.includes(part), {}, text);

/// What the page shows, held against the program's report.
async function matches(page, report) {
  const shown = await tiles(page);
  assert.equal(shown["tokens/s/GPU"], tokens(report));
  assert.equal(shown.MFU, `${(100 * report.mfu).toFixed(1)} %`);
  const bars = await all(page, ".waterfall g[data-mark=bar] rect", (rects) => rects.map((rect) => Number(rect.getAttribute("width"))));
  assert.ok(Math.abs(bars.at(-1) / bars[0] - report.mfu) < 0.005);
}

for (const width of [400, 1000, 1600]) {
  for (const dark of [false, true]) {
    test(`at ${width} pixels, ${dark ? "dark" : "light"}: in order, and no fault that axe knows`, options, async () => {
      const { page, complaints } = await openServed(browser, server.url, { width, dark });
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
      await all(page, ".why details", (all) => all.forEach((details) => (details.open = true)));
      assert.deepEqual(await accessibilityFaults(page), []);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
      await matches(page, run());
      assert.deepEqual(complaints, []);
      await page.close();
    });
  }
}

test("a slider by keyboard: figures, waterfall and timeline follow, those of run; the command is there to paste", options, async () => {
  const { page, complaints } = await openServed(browser, server.url);
  const spans = await one(page, ".timeline .drawing", (place) => place.innerHTML);
  await followed(page, "#control-batch-micro_batch", "ArrowLeft");
  await settled(page, "/batch/micro_batch=1");
  assert.equal(await command(page), "stepcast run 7b-32xa100 --set /model/layers=4 --set /run/steps=3 --set /batch/micro_batch=1");
  await matches(page, run("/batch/micro_batch=1"));
  assert.notEqual(await one(page, ".timeline .drawing", (place) => place.innerHTML), spans);
  assert.equal(await one(page, "#control-batch-micro_batch", (input) => input.getAttribute("aria-valuetext")), "1");
  assert.equal(await page.evaluate(() => document.activeElement.id), "control-batch-micro_batch");
  assert.match(await one(page, ".tile span", (note) => note.textContent), /against the start/);
  await page.waitForFunction(() => document.querySelector("main > [role=status]").textContent.startsWith("step time"));
  await page.click(".command button:nth-of-type(2)");
  await page.waitForFunction(() => !document.querySelector(".command code").textContent.includes("micro_batch"));
  await matches(page, run());
  assert.deepEqual(complaints, []);
  await page.close();
});

test("what the combination refuses can't be chosen, and says why; a framework brings its own settings", options, async () => {
  const { page, complaints } = await openServed(browser, server.url);
  assert.ok(await one(page, "#control-policy-forward_prefetch_depth", (input) => input.disabled));
  assert.match(await one(page, "#control-policy-forward_prefetch_depth-why", (element) => element.textContent), /belongs to "fsdp2"/);
  await page.click("label:has(> [name=control-policy-backward_prefetch][value='2'])");
  await settled(page, "/policy/backward_prefetch=NONE");
  await page.click("label:has(> [name=control-policy-framework][value='1'])");
  await settled(page, "/policy/framework=fsdp2");
  assert.match(await one(page, ".taken", (element) => element.textContent), /backward_prefetch/);
  assert.ok(await one(page, "#control-policy-limit_all_gathers", (input) => input.disabled));
  assert.ok(!(await one(page, "#control-policy-forward_prefetch_depth", (input) => input.disabled)));
  const words = (await command(page)).match(/--set [^ ]+/g).map((set) => set.slice(6)).slice(2);
  await matches(page, run(...words));
  assert.deepEqual(complaints, []);
  await page.close();
});

test("memory that runs out: what held it at once, what would fit soon after", options, async () => {
  const { page, complaints } = await openServed(browser, server.url);
  for (let i = 0; i < 6; ++i) {
    await page.focus("#control-batch-seq_len");
    await page.keyboard.press("End");
    await page.focus("#control-batch-micro_batch");
    await page.keyboard.press("End");
  }
  await page.waitForFunction(() => document.querySelector(".tile strong").textContent === "out of memory");
  await page.waitForFunction(() => [...document.querySelectorAll(".charts h2")].some((title) => title.textContent === "What would fit"), { timeout: 60_000 });
  assert.deepEqual(complaints, []);
  await page.close();
});

test("a server that is gone is said on the page, and the controls go back", options, async () => {
  const other = await serving(binary, ...start);
  const { page } = await openServed(browser, other.url);
  assert.equal(await other.stop(), 0);
  await page.focus("#control-batch-micro_batch");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector(".problem").textContent === "stepcast serve no longer answers");
  assert.equal(await one(page, "#control-batch-micro_batch", (input) => input.getAttribute("aria-valuetext")), "2");
  await page.close();
});
