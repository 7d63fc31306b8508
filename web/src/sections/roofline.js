// Classes of kernels under the device's roof, on logarithmic axes, and how the micro-batch moves them; below, what share of its roof each class attains.
import * as Plot from "@observablehq/plot";
import { described } from "../described.js";
import { figure, percent, time } from "../format.js";
import { classColour } from "../palette.js";
import { classLegend } from "./parts.js";
import { barRows } from "./rows.js";

const TERA = 1e12;
const rate = (flops) => `${figure(flops / TERA, "")} TFLOP/s`;
const bandwidth = (bytes) => `${figure(bytes / 1e9, "")} GB/s`;

/// Rows with FLOPs: {kernels, micro_batch, x, y, own}; `own`: the scenario's micro-batch.
export function points(section) {
  const of = (rows, micro_batch) =>
    rows.filter(({ flops }) => flops > 0).map((row) => ({ ...row, micro_batch, x: row.flops_per_byte, y: row.flops_per_s / TERA, own: micro_batch === section.micro_batch }));
  return [...of(section.kernels, section.micro_batch), ...section.micro_batches.flatMap(({ micro_batch, kernels }) => (micro_batch === section.micro_batch ? [] : of(kernels, micro_batch)))];
}

/// One roof for each peak: along the bandwidth up to the ridge, then flat. [{peak, line: [{x, y}]}]
export function roofs(all, [low, high]) {
  const peaks = [...new Set(all.map(({ peak_flops_per_s: peak }) => peak))];
  const { peak_bytes_per_s: bytes } = all[0];
  return peaks.map((peak) => ({ peak, line: [low, peak / bytes, high].map((x) => ({ peak, x, y: Math.min(peak, x * bytes) / TERA })) }));
}

const classes = (section) => [...new Set(points(section).map(({ kernels }) => kernels))];

function textOf(point) {
  const what = `${point.kernels}, micro-batch ${point.micro_batch}${point.own ? "" : " instead"}`;
  return `${what}\n${figure(point.x, "")} FLOP/byte, ${rate(point.flops_per_s)}: ${percent(point.attained)} of the roof\nbound by ${point.bound}, ${time(point.time_s)} of a step`;
}

function rooflineChart(section, width) {
  const all = points(section).map((point) => ({ ...point, title: textOf(point) }));
  const ridges = all.map(({ ridge_flops_per_byte: ridge }) => ridge);
  const x = [Math.min(...all.map((point) => point.x), ...ridges) / 4, 3 * Math.max(...all.map((point) => point.x), ...ridges)];
  const lines = roofs(all, x);
  const top = Math.max(...lines.map(({ peak }) => peak)) / TERA;
  const y = [Math.min(...all.map((point) => point.y), ...lines.map(({ line }) => line[0].y)) / 1.6, 2 * top];
  const slope = Math.sqrt(x[0] * Math.min(...ridges)); // where the bandwidth is written
  const colour = (point) => classColour(classes(section).indexOf(point.kernels));
  const own = all.filter((point) => point.own);
  return Plot.plot({
    width,
    height: Math.max(320, Math.min(460, width * 0.45)),
    marginLeft: 54,
    marginTop: 24,
    marginBottom: 42,
    x: { type: "log", domain: x, label: "FLOP per byte of DRAM traffic", grid: true, ticks: Math.max(2, Math.floor(width / 200)), tickFormat: (value) => figure(value, "") },
    y: { type: "log", domain: y, label: "TFLOP/s", grid: true, ticks: 4, tickFormat: (value) => figure(value, "") },
    marks: [
      Plot.line(lines.flatMap(({ line }) => line), { x: "x", y: "y", z: "peak", stroke: "var(--soft)", strokeWidth: 1.8 }),
      Plot.text(lines, { x: x[1], y: ({ peak }) => peak / TERA, text: ({ peak }) => `peak ${rate(peak)}`, textAnchor: "end", dx: -6, dy: -8, fill: "var(--soft)", fontWeight: 600 }),
      Plot.text([all[0]], { x: slope, y: (slope * all[0].peak_bytes_per_s) / TERA, text: ({ peak_bytes_per_s: bytes }) => bandwidth(bytes), textAnchor: "start", dx: 10, dy: 10, fill: "var(--soft)", fontWeight: 600 }),
      Plot.line([...all].sort((a, b) => a.micro_batch - b.micro_batch), { x: "x", y: "y", z: "kernels", stroke: colour, strokeOpacity: 0.6, strokeDasharray: "3 3" }),
      Plot.dot(all.filter((point) => !point.own), { x: "x", y: "y", fill: colour, r: 3.2 }),
      Plot.dot(own, { x: "x", y: "y", fill: colour, stroke: "var(--card)", strokeWidth: 1, r: 7 }),
      Plot.tip(all, Plot.pointer({ x: "x", y: "y", title: "title", lineWidth: Math.min(34, width / 16) })),
    ],
  });
}

function sharesChart(section, width) {
  const rows = section.kernels.map((row) => ({
    label: row.kernels,
    value: `${percent(row.attained)}, ${time(row.time_s)}`,
    pieces: [
      {
        from: 0, to: row.attained, fill: row.flops > 0 ? classColour(classes(section).indexOf(row.kernels)) : "var(--slate)",
        title: `${row.kernels}: ${row.bound === "compute" ? `${rate(row.flops_per_s)} of ${rate(row.peak_flops_per_s)}` : `${bandwidth(row.bytes_per_s)} of ${bandwidth(row.peak_bytes_per_s)}`}`,
      },
    ],
  }));
  return barRows({ rows, width, x: { domain: [0, Math.max(1, ...section.kernels.map(({ attained }) => attained))], tickFormat: (share) => `${Math.round(100 * share)} %` } });
}

export function draw(section, width) {
  const shares = described(sharesChart(section, width), { title: "Share of its roof that each class of kernels attains", text: "Its time in a step stands behind it." });
  if (points(section).length === 0) return shares;
  return [described(rooflineChart(section, width), section), classLegend(classes(section)), shares];
}

export function table(section) {
  const row = (kernels, batch) => [
    kernels.kernels, String(batch), figure(kernels.flops / TERA, ""), figure(kernels.bytes / 1e9, ""), kernels.flops > 0 ? figure(kernels.flops_per_byte, "") : "–", time(kernels.time_s),
    kernels.bound === "compute" ? rate(kernels.flops_per_s) : bandwidth(kernels.bytes_per_s), percent(kernels.attained), kernels.bound,
  ];
  const others = section.micro_batches.filter(({ micro_batch: batch }) => batch !== section.micro_batch);
  const rows = [...section.kernels.map((one) => row(one, section.micro_batch)), ...others.flatMap(({ micro_batch: batch, kernels }) => kernels.map((one) => row(one, batch)))];
  return { columns: ["kernels", "micro-batch", "TFLOP", "GB", "FLOP/byte", "time", "attained", "of the roof", "bound"], rows };
}
