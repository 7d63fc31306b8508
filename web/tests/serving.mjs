// `stepcast serve` for tests and measurements of its page: started on a free port, ended by a signal.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/// {url, stop}; null with what it said on standard error where this build doesn't serve.
export async function serving(binary, ...command) {
  const program = spawn(binary, ["serve", "--port", "0", ...command], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  program.stderr.on("data", (data) => (said += data));
  const ended = once(program, "exit");
  const first = await Promise.race([once(createInterface({ input: program.stdout }), "line").then(([line]) => line), ended.then(() => null)]);
  if (first === null) return { url: null, said };
  const stop = async () => {
    program.kill("SIGTERM");
    const [code] = await ended;
    return code;
  };
  return { url: first, stop };
}

/// Opens the served page; `complaints` fills with errors and with requests that go elsewhere.
export async function openServed(browser, url, { width = 1200, dark = false } = {}) {
  const page = await browser.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => [url, `${url}api/forecast`].includes(request.url()) || complaints.push(`request: ${request.url()}`));
  await page.setViewport({ width, height: 1000 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
  await page.goto(url, { waitUntil: "load" });
  await page.waitForSelector(".charts section svg");
  return { page, complaints };
}

/// Milliseconds from a key on a control to the frame after figures, waterfall and timeline have changed, as the page's reader has them: measured by observers of this script.
export async function followed(page, selector, key) {
  await page.focus(selector);
  await page.evaluate((selector) => {
    globalThis.followed = new Promise((done, fail) => {
      setTimeout(() => fail(new Error("figures, waterfall and timeline did not all change")), 20_000);
      let start;
      document.querySelector(selector).addEventListener("input", (event) => (start = event.timeStamp), { once: true, capture: true });
      const waiting = new Set([".tiles", ".waterfall .drawing", ".timeline .drawing"]);
      for (const place of [...waiting]) {
        const observer = new MutationObserver(() => {
          observer.disconnect();
          waiting.delete(place);
          if (waiting.size > 0) return;
          requestAnimationFrame(() => {
            const channel = new MessageChannel(); // its message comes after the frame is drawn
            channel.port1.onmessage = () => done(performance.now() - start);
            channel.port2.postMessage(null);
          });
        });
        observer.observe(document.querySelector(place), { childList: true, subtree: true, characterData: true });
      }
    });
  }, selector);
  await page.keyboard.press(key);
  return page.evaluate(() => globalThis.followed);
}
