// Device memory over time: what is allocated by owner, what is reserved, and the limit.
import * as Plot from "@observablehq/plot";
import { described } from "../described.js";
import { bytes, figure, time, words } from "../format.js";
import { colour } from "../kinds.js";
import { legend } from "./parts.js";

const GIB = 2 ** 30;
const OWNER_ORDER = ["parameters", "optimizer", "gradients", "all_gather", "reduction", "workspace", "input", "loss", "activations"];
const place = ({ name }) => (OWNER_ORDER.indexOf(name) + 1 || 99);

const ordered = (section) => [...section.owners].sort((a, b) => place(a) - place(b));
const total = (section, index) => section.owners.reduce((sum, owner) => sum + owner.bytes[index], 0);

function title(section, index) {
  const lines = ordered(section).filter((owner) => owner.bytes[index] > 0).map((owner) => `${words(owner.name)}: ${bytes(owner.bytes[index])}`);
  return [`${time(section.time_ns[index] / 1e9)}: ${bytes(total(section, index))} allocated, ${bytes(section.reserved[index])} reserved`, ...lines.reverse()].join("\n");
}

export function draw(section, width) {
  const seconds = section.time_ns.map((ns) => ns / 1e9);
  const areas = ordered(section).flatMap(({ name, bytes: held }) => held.map((value, i) => ({ x: seconds[i], y: value / GIB, name })));
  const points = seconds.map((x, i) => ({ x, allocated: total(section, i) / GIB, reserved: section.reserved[i] / GIB, title: title(section, i) }));
  const top = Math.max(section.limit_bytes / GIB, ...points.map((point) => point.reserved));
  const chart = Plot.plot({
    width,
    height: Math.max(260, Math.min(360, width * 0.34)),
    marginLeft: 46,
    marginTop: 22,
    marginRight: 12,
    x: { label: "time", tickFormat: (value) => figure(value, "s"), ticks: Math.max(2, Math.floor(width / 150)) },
    y: { label: "GiB", domain: [0, top * 1.06], grid: true },
    marks: [
      Plot.areaY(areas, Plot.stackY({ x: "x", y: "y", z: "name", fill: (d) => colour(d.name), curve: "step-after", order: ordered(section).map(({ name }) => name) })),
      Plot.ruleX(section.steps, { x: (step) => step.begin_ns / 1e9, strokeOpacity: 0.5, strokeDasharray: "2 4" }),
      Plot.text(width < 620 ? [] : section.steps, { x: (step) => step.begin_ns / 1e9, text: (step) => `step ${step.step}`, frameAnchor: "top", textAnchor: "start", dx: 4, dy: -16 }),
      Plot.lineY(points, { x: "x", y: "reserved", curve: "step-after", strokeWidth: 1.5 }),
      section.limit_bytes > 0 && Plot.ruleY([section.limit_bytes / GIB], { stroke: "var(--red)", strokeWidth: 1.5, strokeDasharray: "6 4" }),
      section.limit_bytes > 0 && Plot.text([`limit ${bytes(section.limit_bytes)}`], { frameAnchor: "right", y: section.limit_bytes / GIB, dy: -8, dx: -4, fill: "var(--red)", fontWeight: 600 }),
      Plot.ruleY([0]),
      Plot.ruleX(points, Plot.pointerX({ x: "x", strokeOpacity: 0.6 })),
      Plot.tip(points, Plot.pointerX({ x: "x", y: "allocated", title: "title", anchor: width < 620 ? "bottom" : undefined })),
    ],
  });
  const peak = points.reduce((best, point, i) => (point.allocated > points[best].allocated ? i : best), 0);
  const held = ordered(section).map((owner) => [owner.name, bytes(owner.bytes[peak])]);
  return [described(chart, section), legend(held.reverse(), words)];
}

export function table(section) {
  const owners = ordered(section);
  const rows = section.time_ns.map((ns, i) => [time(ns / 1e9), ...owners.map((owner) => bytes(owner.bytes[i])), bytes(total(section, i)), bytes(section.reserved[i])]);
  return { columns: ["time", ...owners.map(({ name }) => words(name)), "allocated", "reserved"], rows };
}
