// Headless Chromium for tests: what is drawn, what was asked of the network, what was written to the console.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const modules = createRequire(join(process.env.STEPCAST_NODE_MODULES, "_"));
export const folder = mkdtempSync(join(tmpdir(), "stepcast-page-"));
export const binary = process.env.STEPCAST_BINARY;

const chromium = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
/// Why there is nothing to look at the page with; null where there is.
export const missing = chromium ? null : "skipped: no Chromium on this machine (Debian's package: chromium)";

export async function launch() {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb"];
  return modules("puppeteer-core").launch({ executablePath: chromium, headless: true, args, userDataDir: join(folder, "profile") });
}

/// The page as the program would write it, with other data.
export function pageFile(name, data) {
  const safe = JSON.stringify(data).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
  const path = join(folder, name);
  writeFileSync(path, readFileSync(process.env.STEPCAST_PAGE_TEMPLATE, "utf8").replace("%DATA%", () => safe));
  return path;
}

/// Opens a file; `complaints` fills with errors, warnings and requests.
export async function open(browser, path, { width = 1200, dark = false } = {}) {
  const page = await browser.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => request.url() === `file://${path}` || complaints.push(`request: ${request.url()}`));
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
  await page.goto(`file://${path}`, { waitUntil: "load" });
  await page.waitForFunction(() => document.querySelector("main section"));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { page, complaints };
}

/// What `read` says of the first element of a selector. Found and read in one turn of the page: Puppeteer's $eval takes two, and a redraw between them leaves
/// it with an element that is in no document any more.
export const one = (page, selector, read) => page.evaluate(`(${read})(document.querySelector(${JSON.stringify(selector)}))`);

/// The same of a list of all its elements.
export const all = (page, selector, read) => page.evaluate(`(${read})([...document.querySelectorAll(${JSON.stringify(selector)})])`);

/// Spans that timelines show: each is one part of a path.
export const spansDrawn = (page) => all(page, "section.timeline .spans path", (paths) => paths.reduce((sum, path) => sum + path.getAttribute("d").split("M").length - 1, 0));

/// Faults against WCAG 2 A and AA that axe finds.
export async function accessibilityFaults(page) {
  await page.evaluate(modules("axe-core").source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
}

export const clean = () => rmSync(folder, { recursive: true, force: true });
