// Takes the pictures of README and docs from pages that the program writes. Usage: scripts/pictures.sh sets the environment; pictures.mjs FOLDER [RUNS.CSV].
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

import { binary, clean, folder, launch, missing, open } from "./browser.mjs";

const WIDTH = 1000;
const [images, runs] = process.argv.slice(2).map((path) => resolve(path));

function written(name, ...command) {
  const place = join(folder, name);
  mkdirSync(place, { recursive: true });
  execFileSync(binary, [...command, "--out", "out"], { cwd: place, stdio: ["ignore", "ignore", "inherit"] });
  return join(place, "out/report.html");
}

/// From the top of the page, or of one of its sections, to the end of another: sections by their number.
async function picture(browser, name, path, { from = null, to, dark = false }) {
  const { page } = await open(browser, path, { width: WIDTH, dark });
  const y = await page.evaluate((first, last) => {
    const margin = 16;
    const top = first == null ? 0 : document.querySelectorAll("main > section")[first].getBoundingClientRect().top - margin;
    return [top + scrollY, document.querySelectorAll("main > section")[last].getBoundingClientRect().bottom + margin + scrollY];
  }, from, to);
  await page.screenshot({ path: join(images, `${name}.png`), clip: { x: 0, y: y[0], width: WIDTH, height: y[1] - y[0] }, captureBeyondViewport: true });
  await page.close();
}

if (missing) {
  console.log(missing);
} else {
  const browser = await launch();
  await picture(browser, "report", written("demo", "demo"), { to: 1 });
  const axes = ["/batch/micro_batch=1,2,3,4,6,8", "/recompute/mode=none,full", "/kernels/set=pytorch-eager,pytorch-compile", "/cluster/nodes=1..16:*2"];
  await picture(browser, "sweep", written("sweep", "sweep", "7b-32xa100", ...axes.flatMap((axis) => ["--vary", axis])), { to: 1, dark: true });
  const late = ["/policy/backward_prefetch=NONE", "/batch/grad_accum=1", "/batch/micro_batch=2"];
  await picture(browser, "timeline", written("late", "run", "7b-32xa100", ...late.flatMap((set) => ["--set", set])), { from: 1, to: 3 });
  const questions = ["--interval", "100", "--train-tokens", "1e12", "--gpu-hour-price", "2", "--gpu-watts", "700"];
  await picture(browser, "uncertainty", written("sure", "run", "7b-32xa100", ...questions), { to: 2 });
  const small = ["--set", "/batch/micro_batch=1", "--set", "/batch/seq_len=1024"];
  const asked = written("asked", "run", "7b-32xa100", ...small, "--roofline", "--scaling", "1,2,4,8,16,32");
  await picture(browser, "roofline", asked, { from: 6, to: 7 });
  if (runs) await picture(browser, "validate", written("validate", "validate", runs), { to: 0 });
  await browser.close();
  clean();
}
