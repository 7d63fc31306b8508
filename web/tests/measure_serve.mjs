// Measures how soon the page of `stepcast serve` follows a slider, in headless Chromium: percentiles of the time from the key to the drawn frame. docs/serve.md, "Speed".
// Usage: STEPCAST_NODE_MODULES=... STEPCAST_BINARY=... node measure_serve.mjs [CHANGES] [SCENARIO and options of serve]; scripts/measure_serve.sh sets them.
import { binary, clean, launch, missing } from "./browser.mjs";
import { followed, openServed, serving } from "./serving.mjs";

const [changes = "200", ...scenario] = process.argv.slice(2);
// Each there and back: smaller batches and sequences, so that memory does not run out.
const SLIDERS = [["#control-batch-micro_batch", "ArrowLeft"], ["#control-batch-seq_len", "ArrowLeft"], ["#control-batch-grad_accum", "ArrowRight"], ["#control-cluster-nodes", "ArrowRight"]];
const back = (key) => (key === "ArrowLeft" ? "ArrowRight" : "ArrowLeft");

if (missing) {
  console.log(missing);
} else {
  const server = await serving(binary, ...(scenario.length > 0 ? scenario : ["7b-32xa100"]));
  if (!server.url) throw new Error(server.said);
  const browser = await launch();
  const { page } = await openServed(browser, server.url);
  const times = new Map(SLIDERS.map(([slider]) => [slider, []]));
  for (let i = 0; i < Number(changes); ++i) {
    const [slider, key] = SLIDERS[i % SLIDERS.length];
    const there = Math.floor(i / SLIDERS.length) % 2 === 0;
    times.get(slider).push(await followed(page, slider, there ? key : back(key)));
  }
  const shown = (name, values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))].toFixed(1);
    console.log(`${name}: ${sorted.length} changes, p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, longest ${sorted.at(-1).toFixed(1)} ms`);
  };
  for (const [slider, values] of times) shown(slider.replace("#control-", ""), values);
  shown("all", [...times.values()].flat());
  await browser.close();
  await server.stop();
  clean();
}
