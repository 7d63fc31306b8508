// The same scenario on clusters of several sizes: speed of a GPU by number of nodes, against the first that runs.
import * as Plot from "@observablehq/plot";
import { described } from "../described.js";
import { bytes, count, percent, time, words } from "../format.js";

/// Why the rules refuse it is a sentence.
const outcome = (text) => (text.includes(" ") ? text : words(text));

function textOf(row) {
  const size = `${count(row.nodes)} nodes${row.gpus == null ? "" : `, ${count(row.gpus)} GPUs`}`;
  if (row.step_time_s == null) return `${size}\n${outcome(row.outcome)}`;
  const exposed = `${time(row.exposed_comm_s)} (${percent(row.exposed_comm_s / row.step_time_s)})`;
  return `${size}\nstep time: ${time(row.step_time_s)}\ntokens/s/GPU: ${count(row.tokens_per_s_per_gpu)}\nefficiency: ${percent(row.efficiency)}\nexposed communication: ${exposed}\nbound by ${row.bound}`;
}

export function draw(section, width) {
  const rows = section.rows.map((row) => ({ ...row, title: textOf(row) })).sort((a, b) => a.nodes - b.nodes);
  const ran = rows.filter((row) => row.step_time_s != null);
  const failed = rows.filter((row) => row.step_time_s == null);
  const first = section.rows.find((row) => row.step_time_s != null)?.tokens_per_s_per_gpu;
  const sizes = [...new Set(rows.map(({ nodes }) => nodes))];
  const every = Math.ceil(sizes.length / Math.max(2, Math.floor(width / 60)));
  const chart = Plot.plot({
    width,
    height: 320,
    marginLeft: 64,
    marginTop: 26,
    marginBottom: 40,
    x: { type: "log", base: 2, label: "nodes", inset: 22, ticks: sizes.filter((_, i) => i % every === 0), tickFormat: count },
    y: { label: "tokens/s/GPU", grid: true, zero: true, ticks: 5, tickFormat: count },
    marks: [
      Plot.ruleY([0]),
      first !== undefined && Plot.ruleY([first], { stroke: "var(--soft)", strokeDasharray: "6 4" }),
      Plot.line(ran, { x: "nodes", y: "tokens_per_s_per_gpu", stroke: "var(--blue)", strokeWidth: 2 }),
      Plot.dot(ran, { x: "nodes", y: "tokens_per_s_per_gpu", fill: "var(--blue)", r: 4.5 }),
      Plot.text(ran.length > width / 55 ? [] : ran, { x: "nodes", y: "tokens_per_s_per_gpu", text: ({ efficiency }) => percent(efficiency), dy: 16, fontWeight: 600 }),
      Plot.text(failed, { x: "nodes", frameAnchor: "bottom", dy: -8, text: () => "✕", fill: "var(--red)", fontWeight: 700, title: "title" }),
      Plot.tip(ran, Plot.pointerX({ x: "nodes", y: "tokens_per_s_per_gpu", title: "title", lineWidth: Math.min(34, width / 16) })),
    ],
  });
  return described(chart, section);
}

export function table(section) {
  const rows = section.rows.map((row) => {
    const known = (value, text) => (value == null ? "–" : text(value));
    return [
      count(row.nodes), known(row.gpus, count), known(row.step_time_s, time), known(row.tokens_per_s_per_gpu, count), known(row.efficiency, percent), known(row.mfu, percent),
      known(row.exposed_comm_s, time), known(row.peak_reserved_bytes, bytes), row.step_time_s == null ? outcome(row.outcome) : row.bound,
    ];
  });
  return { columns: ["nodes", "GPUs", "step time", "tokens/s/GPU", "efficiency", "MFU", "exposed communication", "reserved", "bound"], rows };
}
