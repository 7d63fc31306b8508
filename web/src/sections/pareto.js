// Time against memory headroom: which points no other beats in both.
import * as Plot from "@observablehq/plot";
import { described } from "../described.js";
import { bytes, figure, time } from "../format.js";

const GIB = 2 ** 30;

export function draw(section, width) {
  const points = section.points.map((point) => ({
    ...point, gib: point.headroom_bytes / GIB, title: `${point.words}\n${section.label}: ${time(point.time_s)}\nheadroom: ${bytes(point.headroom_bytes)}`,
  }));
  const front = points.filter((point) => point.front);
  const chart = Plot.plot({
    width,
    height: Math.max(300, Math.min(420, width * 0.4)),
    marginLeft: 50,
    marginTop: 24,
    marginBottom: 40,
    inset: 12,
    x: { label: section.label, tickFormat: (value) => figure(value, "s"), ticks: Math.max(2, Math.floor(width / 130)), grid: true },
    y: { label: "headroom, GiB", grid: true, ticks: 6 },
    marks: [
      Plot.line(front, { x: "time_s", y: "gib", curve: "step-after", stroke: "var(--green)", strokeWidth: 2 }),
      Plot.dot(points.filter((point) => !point.front), { x: "time_s", y: "gib", fill: "var(--slate)", r: 4 }),
      Plot.dot(front, { x: "time_s", y: "gib", fill: "var(--green)", r: 5.5 }),
      Plot.tip(points, Plot.pointer({ x: "time_s", y: "gib", title: "title", lineWidth: Math.min(34, width / 16) })),
    ],
  });
  return described(chart, section);
}

export function table(section) {
  const rows = section.points.map((point) => [time(point.time_s), bytes(point.headroom_bytes), point.front ? "yes" : "", point.words]);
  return { columns: [section.label, "headroom", "beaten by none", "settings"], rows };
}
