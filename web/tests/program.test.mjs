// Pages that the program wrote, held against the reports beside them. docs/page.md.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { accessibilityFaults, all, binary, clean, folder, launch, missing, one, open, spansDrawn } from "./browser.mjs";
import { HOSTILE } from "./sample.mjs";

if (missing) console.log(missing);
const options = { skip: missing ?? false, timeout: 240_000 };
let browser;

before(async () => (browser = missing ? null : await launch()));
after(async () => {
  await browser?.close();
  clean();
});

/// Runs the program in a folder of its own; returns its report and the path of its page.
function written(name, ...command) {
  const place = join(folder, name);
  mkdirSync(place, { recursive: true });
  execFileSync(binary, [...command, "--out", "out"], { cwd: place, stdio: ["ignore", "ignore", "pipe"] });
  return { report: JSON.parse(readFileSync(join(place, "out/report.json"), "utf8")), page: join(place, "out/report.html"), place };
}

const embedded = (path) => JSON.parse(readFileSync(path, "utf8").match(/<script type="application\/json" id="data">(.*?)<\/script>/s)[1]);

/// Opens a page at both ends of the widths, where it has to be in order; leaves the wide one open.
async function opened(path) {
  for (const width of [400, 1600]) {
    const { page, complaints } = await open(browser, path, { width, dark: width === 400 });
    assert.deepEqual(complaints, []);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `overflow at ${width}`);
    if (width === 1600) return page;
    await page.close();
  }
}

const tiles = (page) => all(page, ".tile", (all) => Object.fromEntries(all.map((tile) => [tile.querySelector("dt").textContent, tile.querySelector("strong").textContent])));
const small = ["--set", "/model/layers=4", "--set", "/run/steps=3"];

test("run: the report's figures, every span drawn, no path of this machine", options, async () => {
  const { report, page: path, place } = written("run", "run", "7b-32xa100", ...small);
  const page = await opened(path);
  const shown = await tiles(page);
  assert.equal(shown.MFU, `${(100 * report.mfu).toFixed(1)} %`);
  assert.equal(shown["bound by"], report.bound);
  const data = embedded(path);
  const timeline = data.sections.find(({ kind }) => kind === "timeline");
  const items = timeline.lanes.reduce((sum, lane) => sum + lane.items.length, 0);
  assert.equal(await spansDrawn(page), items);
  const bars = await all(page, "section.waterfall g[data-mark=bar] rect", (rects) => rects.map((rect) => Number(rect.getAttribute("width"))));
  assert.ok(Math.abs(bars.at(-1) / bars[0] - report.mfu) < 0.005);
  assert.ok(!readFileSync(path, "utf8").includes(place));
  assert.deepEqual(await accessibilityFaults(page), []);
  await page.close();
});

test("run: what was asked stands in the report and on the page, with the range of what is uncertain", options, async () => {
  const questions = ["--interval", "10", "--train-tokens", "1e12", "--gpu-hour-price", "2", "--gpu-watts", "700", "--explain", "--roofline", "--scaling", "1,2", "--what-must-be-true"];
  const { report, page: path, place } = written("asked", "run", "7b-32xa100", ...questions, ...small);
  for (const field of ["explain", "cost", "roofline", "scaling", "what_must_be_true", "interval"]) assert.ok(report[field], field);
  const text = readFileSync(join(place, "out/report.txt"), "utf8");
  for (const part of ["From the peak", "Training on", "Roofline:", "By number of nodes", "What must be true", "What is uncertain"]) assert.ok(text.includes(part), part);
  const page = await opened(path);
  const notes = await all(page, ".tile", (all) => Object.fromEntries(all.map((tile) => [tile.querySelector("dt").textContent, tile.querySelector("span")?.textContent])));
  assert.match(notes["step time"], /^80 %: .* to /);
  assert.ok(notes.MFU.includes(`${(100 * report.interval.mfu.p10).toFixed(1)} % to ${(100 * report.interval.mfu.p90).toFixed(1)} %`), notes.MFU);
  const cells = await all(page, "section.table tbody tr", (rows) => rows.map((row) => row.textContent));
  assert.ok(cells.some((cell) => cell.startsWith("price per million tokens")));
  assert.ok(cells.some((cell) => cell.startsWith("Largest micro-batch")));
  const counted = report.roofline.kernels.filter(({ flops }) => flops > 0).length;
  assert.equal(await all(page, "section.roofline g[data-mark=dot] circle", (dots) => dots.length), report.roofline.micro_batches.length * counted);
  assert.equal(await all(page, "section.roofline g[data-mark=bar] rect", (bars) => bars.length), report.roofline.kernels.length);
  assert.equal(await all(page, "section.scaling g[data-mark=dot] circle", (dots) => dots.length), 2);
  assert.deepEqual(await accessibilityFaults(page), []);
  await page.close();
});

test("run: foreign names in the scenario stay names", options, async () => {
  const place = join(folder, "hostile");
  mkdirSync(place);
  writeFileSync(join(place, "s.json"), JSON.stringify({ base: "7b-32xa100", name: HOSTILE, why: HOSTILE, model: { layers: 2 } }));
  const { page: path } = written("hostile", "run", "s.json");
  const page = await opened(path);
  assert.equal(await one(page, "h1", (h1) => h1.textContent), HOSTILE);
  assert.equal(await all(page, "img", (all) => all.length), 0);
  await page.close();
});

test("demo: a bar for each stage", options, async () => {
  const { page: path } = written("demo", "demo", "01-baseline", "04-overlap", "--set", "/model/layers=4");
  const page = await opened(path);
  assert.equal(await all(page, "section.progression g[data-mark=bar] rect", (rects) => rects.length), 2);
  await page.close();
});

test("compare: a bar for each, and parts that lead from the first step time to the second", options, async () => {
  const { report, page: path } = written("compare", "compare", "01-baseline", "04-overlap", "--set", "/model/layers=4");
  const page = await opened(path);
  assert.equal(await all(page, "section.progression g[data-mark=bar] rect", (rects) => rects.length), 2);
  const { from, to, parts } = embedded(path).sections.find(({ kind }) => kind === "bridge");
  assert.ok(Math.abs(parts.reduce((sum, { delta_s }) => sum + delta_s, from.seconds) - to.seconds) < 1e-9);
  assert.equal(from.seconds, report.reports[0].step_time_s);
  const bars = await all(page, "section.bridge g[data-mark=bar] rect", (rects) => rects.map((rect) => ["x", "width"].map((name) => Number(rect.getAttribute(name)))));
  assert.ok(Math.abs(bars.at(-1)[1] / bars[0][1] - to.seconds / from.seconds) < 0.01);
  assert.ok(bars.length > 3);
  await page.close();
});

test("sweep: a cell for each point, and the points that ran against headroom", options, async () => {
  const { report, page: path } = written("sweep", "sweep", "7b-32xa100", "--vary", "/batch/micro_batch=1,2,64", "--vary", "/recompute/mode=none,full", ...small);
  const page = await opened(path);
  assert.equal(await all(page, "section.grid g[data-mark=cell]:not(.best *, .best) rect", (rects) => rects.length), report.points.length);
  const ran = report.points.filter((point) => point.report.outcome === "ok").length;
  assert.equal(await all(page, "section.pareto g[data-mark=dot] circle", (dots) => dots.length), ran);
  assert.ok(ran < report.points.length);
  await page.close();
});

test("tune: a bar for each decision, and the settings to paste", options, async () => {
  const { report, page: path } = written("tune", "tune", "7b-32xa100", "--set", "/model/layers=2", "--simulations", "40");
  const page = await opened(path);
  assert.equal(await all(page, "section.decisions g[data-mark=bar] rect", (rects) => rects.length), report.decisions.length);
  assert.equal(await all(page, "section.code pre", (all) => all.length), Object.keys(report.settings).length);
  await page.close();
});

test("diagnose --scenario: every key of the scenario, both steps, and what products and collectives reached", options, async () => {
  const { place } = written("slow-host", "run", "7b-32xa100", "--set", "/host/scale=2", ...small);
  const { report, page: path } = written("inferred", "diagnose", join(place, "out/trace.json.gz"), "--scenario", "mine.json");
  const { sections, tiles: figures } = embedded(path);
  const keys = sections.find(({ title }) => title === "The scenario behind this trace");
  assert.equal(keys.rows.length, report.scenario.keys.length);
  const [, scale, certainty] = keys.rows.find(([pointer]) => pointer === "/host/scale");
  assert.equal(certainty, "seen");
  assert.ok(Math.abs(Number(scale) - 2) < 0.04, scale);
  const whole = ({ parts }) => Object.values(parts).reduce((sum, part) => sum + part, 0);
  const [traced, predicted] = sections.find(({ title }) => title === "A step, predicted and traced").rows.map(whole);
  const step = report.predicted_beside_traced.per_step[0];
  assert.ok(Math.abs(traced * 1e6 - step.traced_us) < 1 && Math.abs(predicted * 1e6 - step.predicted_us) < 1);
  const rates = sections.filter(({ kind, unit }) => kind === "bars" && unit !== "s").map(({ unit }) => unit);
  assert.deepEqual(rates, ["FLOP/s", "B/s"]);
  assert.equal(figures.find(({ label }) => label === "MFU").value, `${(100 * report.utilisation.mfu).toFixed(1)} %`);
  for (const width of [400, 1600]) {
    const { page, complaints } = await open(browser, path, { width, dark: width === 400 });
    assert.deepEqual(complaints, []);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `overflow at ${width}`);
    const tables = await all(page, "section.table", (all) => all.map((section) => [section.querySelector("h2").textContent, section.querySelectorAll("tbody tr").length]));
    assert.equal(new Map(tables).get(keys.title), keys.rows.length);
    await all(page, "details", (all) => all.forEach((details) => (details.open = true)));
    assert.deepEqual(await accessibilityFaults(page), []);
    await page.close();
  }
});

test("diagnose: the findings, and lanes of the step, of a trace that the program wrote", options, async () => {
  const { place } = written("traced", "run", "7b-32xa100", "--set", "/policy/backward_prefetch=NONE", ...small);
  const { report, page: path } = written("diagnosed", "diagnose", join(place, "out/trace.json.gz"));
  const page = await opened(path);
  assert.equal(await all(page, ".findings-list > li", (all) => all.length), report.findings.length);
  const timeline = embedded(path).sections.find(({ kind }) => kind === "timeline");
  const items = timeline.lanes.reduce((sum, lane) => sum + lane.items.length, 0);
  assert.ok(items > 20);
  assert.equal(await spansDrawn(page), items);
  assert.equal(await one(page, "h1", (h1) => h1.textContent), "trace.json.gz");
  assert.ok(!readFileSync(path, "utf8").includes(place));
  await page.close();
});

test("validate: a point for each judged row, and the worst of them", options, async () => {
  const place = join(folder, "validated");
  mkdirSync(place);
  const head = "id,source,model,gpu,n_gpus,sharding,micro_batch,precision,act_ckpt,tokens_per_s_per_gpu,d_model,n_layers,n_heads,ffn_dim,ffn_kind,vocab,seq_len,framework,tier";
  const row = (id, gpu, precision) => `${id},lab,small,${gpu},8,FULL_SHARD,2,${precision},none,50000,1024,4,8,4096,swiglu,32000,1024,fsdp1,A`;
  writeFileSync(join(place, "runs.csv"), [head, row("a", "a100-80gb", "bf16"), row("b", "h100", "bf16"), row("c", "a100-80gb", "FP8"), ""].join("\n"));
  const { report, page: path } = written("validated", "validate", "runs.csv");
  const page = await opened(path);
  assert.equal(report.rows.length, 2);
  assert.equal(await all(page, "section.scatter g.chosen path", (all) => all.length), 2);
  const shown = await tiles(page);
  assert.equal(shown["median error"], `${(100 * report.summary.median).toFixed(1)} %`);
  assert.equal(await one(page, "h1", (h1) => h1.textContent), "runs.csv");
  assert.deepEqual(await accessibilityFaults(page), []);
  await page.close();
});
