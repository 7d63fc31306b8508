// The drawn page in headless Chromium: everything in the data is drawn, nothing else happens, and it can be used by width, colour scheme, keyboard and print. docs/page.md.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessibilityFaults, all, clean, launch, missing, one, open, pageFile, spansDrawn } from "./browser.mjs";
import { asked, HOSTILE, judged, planned, sample } from "./sample.mjs";

if (missing) console.log(missing);
const options = { skip: missing ?? false, timeout: 240_000 };
let browser, file, plannedFile, askedFile, judgedFile;

before(async () => {
  if (missing) return;
  browser = await launch();
  file = pageFile("sample.html", sample);
  plannedFile = pageFile("planned.html", planned);
  askedFile = pageFile("asked.html", asked(sample));
  judgedFile = pageFile("judged.html", judged);
});
after(async () => {
  await browser?.close();
  clean();
});

const bySection = (kind) => sample.sections.find((section) => section.kind === kind);
const overflow = () => document.documentElement.scrollWidth - innerWidth;

/// Marks drawn in the section of a kind.
const marks = (page, kind, selector) => all(page, `section.${kind} svg ${selector}`, (found) => found.length);

/// What the timeline says when the pointer is at a time, in ns, of a lane.
async function toldAt(page, row, ns) {
  const box = await one(page, ".lanes-scroll svg", (svg) => {
    svg.scrollIntoView({ block: "center", behavior: "instant" });
    const { x, y, width, height } = svg.getBoundingClientRect();
    return { x, y, width, height };
  });
  const { lanes, length_ns: length } = bySection("timeline");
  await page.mouse.move(box.x + 14 + ((box.width - 28) * ns) / length, box.y + (row + 0.5) * ((box.height - 26) / lanes.length));
  return one(page, "section.timeline output", (output) => output.textContent);
}

for (const width of [400, 800, 1600]) {
  for (const dark of [false, true]) {
    test(`at ${width} pixels, ${dark ? "dark" : "light"}: all is drawn, nothing overflows, nothing is asked of a network`, options, async () => {
      const { page, complaints } = await open(browser, file, { width, dark });
      assert.deepEqual(complaints, []);
      assert.ok((await page.evaluate(overflow)) <= 0);
      const items = bySection("timeline").lanes.reduce((sum, lane) => sum + lane.items.length, 0);
      assert.equal(await spansDrawn(page), items);
      assert.equal(await marks(page, "waterfall", "g[data-mark=bar] rect"), bySection("waterfall").losses.length + 2);
      assert.equal(await marks(page, "progression", "g[data-mark=bar] rect"), bySection("progression").stages.length);
      assert.equal(await marks(page, "bars", "g[data-mark=bar] rect"), bySection("bars").bars.length);
      assert.equal(await marks(page, "parts", "g[data-mark=bar] rect"), 9);
      assert.equal(await marks(page, "memory", "g[data-mark=area] path"), bySection("memory").owners.length);
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number)[0]);
      assert.ok(dark ? ground < 60 : ground > 200, `ground ${ground}`);
      await page.close();
    });
  }
}

for (const width of [400, 1600]) {
  test(`a sweep, a search and a diagnosis at ${width} pixels`, options, async () => {
    const { page, complaints } = await open(browser, plannedFile, { width, dark: width === 400 });
    assert.deepEqual(complaints, []);
    assert.ok((await page.evaluate(overflow)) <= 0);
    const [grid, line] = await page.$$("section.grid");
    assert.equal((await grid.$$("g[data-mark=cell]:not(.best *, .best) rect")).length, 6); // the two longest axes: 3 x 2
    assert.equal((await line.$$("g[data-mark=dot] circle")).length, 10);
    assert.equal(await marks(page, "pareto", "g[data-mark=dot] circle"), 40);
    assert.equal(await marks(page, "decisions", "g[data-mark=bar] rect"), 2);
    assert.equal(await all(page, ".findings-list > li", (items) => items.length), 2);
    assert.equal(await all(page, "section.table tbody tr", (rows) => rows.length), 25);
    assert.equal(await marks(page, "bars", "g[data-mark=bar] rect"), 2);
    assert.ok(await all(page, "section.bars svg text", (texts) => texts.some((text) => text.textContent === "250 TFLOP/s")));
    assert.equal(await all(page, "img", (found) => found.length), 0);
    await page.close();
  });
}

for (const width of [400, 800, 1600]) {
  test(`what was asked beside a forecast, at ${width} pixels: kernels under their roof, points where the data are`, options, async () => {
    const { page, complaints } = await open(browser, askedFile, { width, dark: width === 800 });
    assert.deepEqual(complaints, []);
    assert.ok((await page.evaluate(overflow)) <= 0);
    assert.equal(await marks(page, "interval", "g[data-mark=bar] rect"), 4); // the range in two halves, two causes
    assert.equal(await marks(page, "roofline", "g[data-mark=bar] rect"), 3);
    assert.equal(await marks(page, "roofline", "g[data-mark=dot] circle"), 6); // two classes with FLOPs, three micro-batches
    assert.equal(await marks(page, "scaling", "g[data-mark=dot] circle"), 3);
    const crosses = await all(page, "section.scaling svg text", (all) => all.filter((text) => text.textContent.startsWith("✕")).length);
    assert.equal(crosses, 2);
    await page.close();
  });
}

test("a roofline's dots lie on logarithmic axes below the roof, and another micro-batch where its intensity is", options, async () => {
  const { page } = await open(browser, askedFile);
  const dots = await all(page, "section.roofline g[data-mark=dot] circle", (all) => all.map((dot) => [Number(dot.getAttribute("cx")), Number(dot.getAttribute("cy")), Number(dot.getAttribute("r"))]));
  const others = dots.filter(([, , r]) => r < 5);
  const own = dots.filter(([, , r]) => r > 5);
  assert.equal(own.length, 2);
  // Products: intensity 1000 batch / scale; the other class stays at 100 FLOP/byte.
  const x = (intensity) => own[1][0] + ((own[0][0] - own[1][0]) * Math.log(intensity / 100)) / Math.log(2000 / 1.5 / 100);
  for (const intensity of [1000 / 1.25, 4000 / 2]) assert.ok(others.some(([cx]) => Math.abs(cx - x(intensity)) < 1), String(intensity));
  assert.equal(others.filter(([cx]) => Math.abs(cx - own[1][0]) < 0.5).length, 2);
  const roof = await one(page, "section.roofline g[data-mark=line] path", (path) => path.getAttribute("d").match(/-?[\d.]+/g).map(Number));
  assert.ok(own.every(([, cy]) => cy > roof[5]), "above the peak"); // the flat part's end; y grows downwards
  await page.close();
});

for (const width of [400, 800, 1600]) {
  test(`forecasts against measurements at ${width} pixels: a point each, where they are equal on the line`, options, async () => {
    const { page, complaints } = await open(browser, judgedFile, { width, dark: width === 400 });
    assert.deepEqual(complaints, []);
    assert.ok((await page.evaluate(overflow)) <= 0);
    assert.equal(await marks(page, "scatter", "g.chosen path"), 30 + 2);
    assert.equal(await marks(page, "scatter", "g.others circle"), 0);
    assert.equal(await marks(page, "scatter", "g[data-mark=rule] line"), 1); // the interval
    const places = await all(page, "section.scatter g.chosen path", (all) => all.map((path) => path.getAttribute("transform").match(/-?[\d.]+/g).map(Number)));
    const line = await one(page, "section.scatter g[data-mark=line] path", (path) => path.getAttribute("d").match(/-?[\d.]+/g).map(Number));
    const onLine = (x) => line[1] + ((line[3] - line[1]) * (x - line[0])) / (line[2] - line[0]);
    assert.ok(Math.abs(places[10][1] - onLine(places[10][0])) < 0.6); // the exact one
    assert.ok(places[25][1] < onLine(places[25][0]) && places[2][1] > onLine(places[2][0])); // too fast above, too slow below
    await page.close();
  });
}

test("points are chosen by keyboard: the others stay as a ground, errors are of the chosen ones, the focus stays", options, async () => {
  const { page, complaints } = await open(browser, judgedFile);
  await page.focus("section.scatter [data-filter=source]");
  for (const value of [HOSTILE, "source 0", "source 1"]) {
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction((chosen) => document.activeElement.dataset.filter === "source" && document.activeElement.value === chosen, {}, value);
  }
  assert.equal(await marks(page, "scatter", "g.chosen path"), 2 + 2);
  assert.equal(await marks(page, "scatter", "g.others circle"), 28);
  assert.equal(await one(page, "section.scatter output", (output) => output.textContent), "2 rows: median error 7.5 %, mean 7.5 %, largest 9.0 %, bias −1.5 %");
  assert.equal((await page.$$("section.scatter .legend li")).length, 1 + 1);
  await page.select("section.scatter [data-filter=gpu]", "h100");
  await page.waitForFunction(() => document.querySelectorAll("section.scatter g.chosen path").length === 1 + 2);
  await page.select("section.scatter [data-filter=source]", "");
  await page.waitForFunction(() => document.querySelectorAll("section.scatter g.chosen path").length === 15 + 2);
  assert.equal(await page.$("section.scatter [data-filter=tier]"), null); // one tier: nothing to choose
  assert.deepEqual(complaints, []);
  await page.close();
});

test("what a heat-map shows is chosen by keyboard, and the focus stays", options, async () => {
  const { page, complaints } = await open(browser, plannedFile);
  const chosen = async (index, value) => {
    await page.focus(`section.grid label:nth-of-type(${index}) select`);
    await page.select(`section.grid label:nth-of-type(${index}) select`, value);
    await page.waitForFunction(() => document.activeElement.tagName === "SELECT");
  };
  await chosen(2, "2");
  await chosen(3, "1");
  assert.equal(await marks(page, "grid", "g[data-mark=cell]:not(.best *, .best) rect"), 4);
  await chosen(1, "1");
  const titles = await all(page, "section.grid g[data-mark=cell] title", (all) => all.map((title) => title.textContent));
  assert.ok(titles.every((title) => title.includes("the best of 3 points")));
  assert.deepEqual(complaints, []);
  await page.close();
});

test("foreign texts are shown as they are and make no elements", options, async () => {
  const { page } = await open(browser, file);
  assert.equal(await one(page, "h1", (h1) => h1.textContent), HOSTILE);
  assert.equal(await all(page, "img, script[src], link, iframe", (found) => found.length), 0);
  assert.ok((await page.title()).startsWith(HOSTILE));
  assert.ok((await toldAt(page, 1, 38e6)).endsWith(`${HOSTILE}, 10.5 ms at 33 ms`));
  await page.close();
});

test("the timeline says what the pointer is at, and what is nearest by", options, async () => {
  const { page } = await open(browser, file);
  const [, compute, gaps] = bySection("timeline").lanes;
  for (const item of [compute.items[0], compute.items[200], compute.items.at(-1)]) assert.match(await toldAt(page, 1, item[0] + item[1] / 2), /^(forward|backward) kernels, 3 of them/);
  assert.match(await toldAt(page, 2, gaps.items[1][0] + 6e6), /^idle: launch bound: before gemm, 12 ms at 188 ms/);
  assert.match(await toldAt(page, 2, gaps.items[1][0] - 2e6), /^idle: launch bound: before gemm, 12 ms at 188 ms/);
  await page.close();
});

test("the waterfall's bars lie where the losses are", options, async () => {
  const { page } = await open(browser, file);
  const bars = await all(page, "section.waterfall g[data-mark=bar] rect", (rects) => rects.map((rect) => ["x", "width"].map((name) => Number(rect.getAttribute(name)))));
  const { losses, step_time_s: step } = bySection("waterfall");
  const [x0, whole] = bars[0];
  let left = 1;
  losses.forEach(({ seconds }, i) => {
    const [x, width] = bars[i + 1];
    left -= seconds / step;
    assert.ok(Math.abs(width - (Math.abs(seconds) / step) * whole) < 1.5, `${i}: ${width}`);
    assert.ok(Math.abs(x - x0 - whole * Math.min(left, left + seconds / step)) < 1.5, `${i}: ${x}`);
  });
  assert.ok(Math.abs(bars.at(-1)[1] - 0.5 * whole) < 1.5);
  await page.close();
});

for (const dark of [false, true]) {
  test(`no fault that axe knows, ${dark ? "dark" : "light"}`, options, async () => {
    for (const path of [file, plannedFile, askedFile, judgedFile]) {
      const { page } = await open(browser, path, { dark });
      await all(page, "details", (all) => all.forEach((details) => (details.open = true)));
      await page.waitForSelector("details table");
      assert.deepEqual(await accessibilityFaults(page), []);
      await page.close();
    }
  });
}

test("every chart has a name and a table that opens by keyboard", options, async () => {
  const { page } = await open(browser, file);
  const charts = await all(page, "main svg[role=img]", (all) => all.map((svg) => svg.getAttribute("aria-label")));
  assert.equal(charts.length, 6);
  assert.ok(charts.every((name) => name.length > 20));
  await page.focus("section.waterfall summary");
  await page.keyboard.press("Enter");
  await page.waitForSelector("section.waterfall tbody tr");
  assert.equal(await all(page, "section.waterfall tbody tr", (rows) => rows.length), bySection("waterfall").losses.length + 1);
  await page.close();
});

test("the tab key reaches every control, and the timeline zooms and scrolls by keyboard", options, async () => {
  const { page } = await open(browser, file);
  const reached = new Set();
  for (let i = 0; i < 60; ++i) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.dataset.zoom ?? document.activeElement.className ?? ""));
    reached.add(await page.evaluate(() => document.activeElement.tagName));
  }
  for (const control of ["in", "out", "whole", "scroll lanes-scroll", "scroll", "A", "SUMMARY"]) assert.ok(reached.has(control), control);
  const width = () => one(page, ".lanes-scroll svg", (svg) => svg.getBoundingClientRect().width);
  const before = await width();
  await page.focus("[data-zoom=in]");
  await page.keyboard.press("Enter");
  await page.waitForFunction((least) => document.querySelector(".lanes-scroll svg").getBoundingClientRect().width > least, {}, before * 1.9);
  await page.waitForFunction(() => document.activeElement.dataset.zoom === "in");
  assert.ok((await page.evaluate(overflow)) <= 0);
  await page.focus(".lanes-scroll");
  const from = await one(page, ".lanes-scroll", (region) => region.scrollLeft);
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((was) => document.querySelector(".lanes-scroll").scrollLeft > was, {}, from);
  await page.close();
});

test("it is redrawn when the window changes, and prints", options, async () => {
  const { page, complaints } = await open(browser, file, { width: 1600 });
  await page.setViewport({ width: 400, height: 900 });
  await page.waitForFunction(() => document.querySelector("section.memory svg").getBoundingClientRect().width < 400);
  assert.ok((await page.evaluate(overflow)) <= 0);
  await page.setViewport({ width: 1200, height: 900 });
  await page.waitForFunction(() => document.querySelector("section.memory svg").getBoundingClientRect().width > 800);
  const pdf = await page.pdf({ format: "A4", printBackground: true });
  assert.ok(pdf.length > 20_000);
  await page.emulateMediaType("print");
  assert.equal(await one(page, "section.timeline .controls", (controls) => getComputedStyle(controls).display), "none");
  assert.equal(await one(page, "body", (body) => getComputedStyle(body).backgroundColor), "rgb(255, 255, 255)");
  assert.deepEqual(complaints, []);
  await page.close();
});
