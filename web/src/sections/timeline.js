// The lanes of a step: host, streams, and why the compute stream was idle. Short spans come joined; how much of a joined one is work shows as its opacity.
import * as Plot from "@observablehq/plot";
import { described } from "../described.js";
import { h, s } from "../dom.js";
import { count, figure, percent, time, words } from "../format.js";
import { colour, label } from "../kinds.js";
import { legend } from "./parts.js";

const LANE = 34;
const AXIS = 26;
const ZOOMS = [1, 2, 4, 8, 16];
const NARROW = 620;

/// Spans as objects, by lane.
export function spans(section) {
  return section.lanes.flatMap((lane, row) =>
    lane.items.map(([begin, length, kind, name, members, busy]) => ({
      row, lane: lane.name, begin: begin / 1e9, end: (begin + length) / 1e9, kind: section.kinds[kind], name: section.names[name], members, busy: busy / 1e9,
    })),
  );
}

export function textOf(span) {
  const length = span.end - span.begin;
  const many = span.members > 1 ? `, ${count(span.members)} of them, busy ${percent(span.busy / length)}, longest: ` : ": ";
  return `${label(span.kind)}${many}${span.name || "–"}, ${time(length)} at ${time(span.begin)}`;
}

/// [kind, time, lane] by lane and kind, longest first within a lane.
export function totals(section) {
  const sums = new Map();
  for (const span of spans(section)) {
    const key = `${span.row} ${span.kind}`;
    const sum = sums.get(key) ?? { row: span.row, lane: span.lane, kind: span.kind, busy: 0, members: 0 };
    sum.busy += span.busy;
    sum.members += span.members;
    sums.set(key, sum);
  }
  return [...sums.values()].sort((a, b) => a.row - b.row || b.busy - a.busy);
}

const SHADES = 8;
const shade = ({ busy, begin, end }) => Math.round(SHADES * Math.min(1, busy / (end - begin)));

/// A mark that draws the spans of one kind and shade as one path: a thousand elements take a browser several times as long. What a span is, is found by its place.
const spanPaths = (all) => (_, { x, y }) => {
  const paths = new Map();
  for (const span of all) {
    const key = `${span.kind} ${shade(span)}`;
    const path = paths.get(key) ?? { span, outline: "" };
    const [left, right, top, bottom] = [x(span.begin), x(span.end), y(span.row + 0.1), y(span.row + 0.9)].map((at) => at.toFixed(2));
    path.outline += `M${left},${top}H${right}V${bottom}H${left}Z`;
    paths.set(key, path);
  }
  const drawn = [...paths.values()].map(({ span, outline }) => s("path", { d: outline, fill: colour(span.kind), "fill-opacity": 0.25 + (0.75 * shade(span)) / SHADES }));
  return s("g", { class: "spans" }, drawn);
};

function chart(section, all, width) {
  return Plot.plot({
    width,
    height: section.lanes.length * LANE + AXIS,
    margin: 0,
    marginLeft: 14,
    marginRight: 14,
    marginBottom: AXIS,
    x: { domain: [0, section.length_ns / 1e9], label: null, tickFormat: (value) => figure(value, "s"), ticks: Math.max(3, Math.floor(width / 130)) },
    y: { domain: [0, section.lanes.length], reverse: true, axis: null },
    marks: [
      Plot.gridX({ ticks: Math.max(3, Math.floor(width / 130)) }),
      Plot.rect(section.lanes, { x1: 0, x2: section.length_ns / 1e9, y1: (_, i) => i + 0.1, y2: (_, i) => i + 0.9, fill: "var(--lane)", ariaHidden: true, className: "lanes" }),
      spanPaths(all),
    ],
  });
}

/// The span of a row at a time, or the one that is nearest by within `slack` seconds: many are thinner than a pointer.
export function spanAt(all, row, at, slack) {
  let best, distance = slack;
  for (const span of all) {
    if (span.row !== row) continue;
    const away = Math.max(span.begin - at, at - span.end, 0);
    if (away === 0) return span;
    if (away < distance) [best, distance] = [span, away];
  }
  return best;
}

/// Says in `output` what the pointer is at.
function tellSpans(svg, all, output) {
  const scale = svg.scale("x"), width = Number(svg.getAttribute("width"));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), pixel = width / box.width;
    const left = (event.clientX - box.left) * pixel, top = (event.clientY - box.top) * pixel;
    const span = spanAt(all, Math.floor(top / LANE), scale.invert(left), scale.invert(2) - scale.invert(0));
    if (span) output.textContent = textOf(span);
  });
}

function controls(state, redraw, output) {
  const zoom = (step) => () => {
    const index = Math.max(0, Math.min(ZOOMS.length - 1, ZOOMS.indexOf(state.zoom) + step));
    state.zoom = step === 0 ? 1 : ZOOMS[index];
    state.focus = step === 0 ? "whole" : step > 0 ? "in" : "out";
    redraw();
  };
  const button = (name, text, caption, step, off) => h("button", { type: "button", "data-zoom": name, "aria-label": caption, "aria-disabled": off ? "true" : null, click: zoom(step) }, text);
  return h(
    "div",
    { class: "controls" },
    button("out", "−", "Zoom out", -1, state.zoom === 1),
    button("in", "+", "Zoom in", 1, state.zoom === ZOOMS.at(-1)),
    button("whole", "whole step", "Show the whole step", 0, state.zoom === 1),
    output,
  );
}

export function draw(section, width, state, redraw) {
  state.zoom ??= 1;
  const labels = width < NARROW ? 84 : 108;
  const inner = Math.max(200, width - labels);
  const all = spans(section);
  const svg = described(chart(section, all, inner * state.zoom), section);
  const output = h("output", {}, state.zoom > 1 ? "scroll with the arrow keys; point at a span for its name" : "point at a span for its name");
  tellSpans(svg, all, output);
  const region = h("div", { class: "scroll lanes-scroll", tabindex: "0", role: "region", "aria-label": `${section.title}, scrolls sideways when zoomed in` }, svg);
  const lanes = h("div", { class: "lane-names", "aria-hidden": "true" }, section.lanes.map(({ name }) => h("span", {}, words(name))));
  const bar = controls(state, redraw, output);
  // Redrawn controls keep the focus, and the middle of what was seen stays in the middle.
  const middle = state.middle ?? 0.5;
  region.addEventListener("scroll", () => (state.middle = (region.scrollLeft + region.clientWidth / 2) / region.scrollWidth));
  const scrolls = state.zoom > 1 || state.focus; // what is seen whole needs no layout to be put in its place
  if (scrolls) requestAnimationFrame(() => {
    region.scrollLeft = middle * region.scrollWidth - region.clientWidth / 2;
    if (state.focus) bar.querySelector(`[data-zoom=${state.focus}]`).focus();
    state.focus = null;
  });
  const seen = new Map();
  for (const { kind, busy } of totals(section)) seen.set(kind, (seen.get(kind) ?? 0) + busy);
  return [bar, h("div", { class: "lanes-grid", style: `grid-template-columns: ${labels}px minmax(0, 1fr)` }, lanes, region), legend([...seen].map(([kind, busy]) => [kind, time(busy)]))];
}

export function table(section) {
  const step = section.length_ns / 1e9;
  const rows = totals(section).map(({ lane, kind, busy, members }) => [words(lane), label(kind), count(members), time(busy), percent(busy / step)]);
  return { columns: ["lane", "what", "count", "time", "of the step"], rows };
}
