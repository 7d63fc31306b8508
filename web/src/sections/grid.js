// The points of a sweep: a line over one axis, a heat-map over two; of more axes two are chosen, and a cell is the best over the others.
import * as Plot from "@observablehq/plot";
import { described } from "../described.js";
import { h } from "../dom.js";
import { bytes, figure, words } from "../format.js";
import { cells, indices } from "../grid_cells.js";
import { step, STEPS } from "../palette.js";
import { shortened, textWidth } from "../text_width.js";

const plain = (value) => value.replace(/^"(.*)"$/, "$1");
const axisName = ({ pointer }) => words(pointer.slice(pointer.lastIndexOf("/") + 1));

function failure(section, point) {
  const missing = section.missing_bytes[point];
  return missing == null ? words(section.outcomes[point]) : `out of memory, ${bytes(missing)} missing`;
}

function textOf(section, state, cell) {
  const which = indices(section.axes, cell.point);
  const settings = section.axes.map((axis, i) => `${axisName(axis)} ${plain(axis.values[which[i]])}`).join(", ");
  const others = cell.count > 1 ? `\nthe best of ${cell.count} points` : "";
  if (cell.value == null) return `${settings}\n${failure(section, cell.point)}${others}`;
  const lines = section.metrics.filter(({ values }) => values[cell.point] != null).map(({ name, unit, values }) => `${name}: ${figure(values[cell.point], unit)}`);
  return `${settings}\n${lines.join("\n")}\nbound by ${section.bounds[cell.point]}${others}`;
}

function heatMap(section, width, state) {
  const { unit } = section.metrics[state.metric];
  const all = cells(section, state.metric, state.x, state.y);
  const ran = all.filter(({ value }) => value != null);
  const [low, high] = [Math.min(...ran.map(({ value }) => value)), Math.max(...ran.map(({ value }) => value))];
  const name = (axis) => (index) => plain(section.axes[axis].values[index]);
  const domain = (axis) => section.axes[axis].values.map((_, index) => index);
  const longest = (axis) => Math.max(...section.axes[axis].values.map((value) => textWidth(plain(value))));
  const marginLeft = Math.min(width * 0.35, Math.max(30, longest(state.y) + 12));
  const cellWidth = (width - marginLeft - 8) / section.axes[state.x].values.length;
  const turned = longest(state.x) > cellWidth;
  const fits = cellWidth > 62;
  const high_is_good = section.metrics[state.metric].high_is_good;
  const best = ran.filter(({ value }) => value === (high_is_good ? high : low)).slice(0, 1);
  return Plot.plot({
    width,
    marginLeft,
    marginRight: 8,
    marginTop: 4,
    marginBottom: turned ? 84 : 26,
    height: section.axes[state.y].values.length * 38 + (turned ? 88 : 30),
    x: { type: "band", domain: domain(state.x), label: null, tickFormat: (i) => shortened(name(state.x)(i), 110), tickRotate: turned ? -40 : 0, tickSize: 0, padding: 0.04 },
    y: { type: "band", domain: domain(state.y), label: null, tickFormat: (i) => shortened(name(state.y)(i), marginLeft - 10), tickSize: 0, padding: 0.05 },
    marks: [
      Plot.cell(all, { x: "x", y: "y", fill: (d) => (d.value == null ? "var(--none)" : `var(--seq-${step(d.value, low, high)})`), title: (d) => textOf(section, state, d), rx: 3 }),
      Plot.cell(best, { x: "x", y: "y", stroke: "currentColor", strokeWidth: 2.5, rx: 3, className: "best" }),
      Plot.text(all, {
        x: "x", y: "y", fontWeight: 600,
        text: (d) => (d.value == null ? (fits ? words(section.outcomes[d.point]) : "✕") : fits ? figure(d.value, unit) : ""),
        fill: (d) => (d.value == null ? "var(--soft)" : `var(--seq-ink-${step(d.value, low, high) > (STEPS - 1) / 2 ? "high" : "low"})`),
      }),
    ],
  });
}

function line(section, width, state) {
  const { unit, name } = section.metrics[state.metric];
  const [axis] = section.axes;
  const numbers = axis.values.every((value) => value.trim() !== "" && Number.isFinite(Number(value)));
  const all = cells(section, state.metric, 0, -1);
  const values = axis.values.map(Number);
  const type = Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) > 20 ? "log" : "linear";
  const x = numbers ? (d) => Number(axis.values[d.x]) : (d) => d.x;
  const ran = all.filter(({ value }) => value != null);
  const failed = all.filter(({ value }) => value == null);
  return Plot.plot({
    width,
    height: 320,
    marginLeft: 74,
    marginTop: 24,
    marginBottom: 40,
    x: numbers ? { type, label: axisName(axis), inset: 16, tickFormat: (value) => value.toLocaleString("en-US"), ticks: Math.max(2, Math.floor(width / 90)) } : { type: "point", domain: axis.values.map((_, i) => i), label: axisName(axis), tickFormat: (i) => plain(axis.values[i]) },
    y: { label: name, grid: true, zero: true, tickFormat: (value) => figure(value, unit), ticks: 5 },
    marks: [
      Plot.ruleY([0]),
      Plot.line(ran, { x, y: "value", stroke: "var(--blue)", strokeWidth: 2 }),
      Plot.dot(ran, { x, y: "value", fill: "var(--blue)", r: 4.5, title: (d) => textOf(section, state, d) }),
      Plot.text(ran.length > 14 ? [] : ran, { x, y: "value", text: (d) => figure(d.value, unit), dy: -13, fontWeight: 600 }),
      Plot.text(failed, { x, frameAnchor: "bottom", dy: -8, text: () => "✕", fill: "var(--red)", fontWeight: 700, title: (d) => textOf(section, state, d) }),
    ],
  });
}

function choice(caption, options, chosen, set) {
  return h("label", {}, `${caption} `, h("select", { change: (event) => set(Number(event.target.value)) }, options.map((name, i) => h("option", { value: i, selected: i === chosen }, name))));
}

export function draw(section, width, state, redraw) {
  state.metric ??= 0;
  // The two longest axes, in the order in which they were given.
  const longest = section.axes.map((_, i) => i).sort((a, b) => section.axes[b].values.length - section.axes[a].values.length || b - a).slice(0, 2).sort((a, b) => a - b);
  state.x ??= longest.at(-1);
  state.y ??= section.axes.length > 1 ? longest[0] : -1;
  const axes = section.axes.map(axisName);
  const set = (key) => (value) => {
    if (key === "x" && value === state.y) state.y = state.x;
    if (key === "y" && value === state.x) state.x = state.y;
    state[key] = value;
    state.focus = key;
    redraw();
  };
  const choices = { metric: choice("show", section.metrics.map(({ name }) => name), state.metric, set("metric")) };
  if (axes.length > 2) Object.assign(choices, { x: choice("across", axes, state.x, set("x")), y: choice("down", axes, state.y, set("y")) });
  requestAnimationFrame(() => {
    if (state.focus) choices[state.focus].querySelector("select").focus();
    state.focus = null;
  });
  const chart = axes.length === 1 ? line(section, width, state) : heatMap(section, width, state);
  const note = axes.length > 1 && h("p", { class: "axes" }, `${axes[state.y]} down, ${axes[state.x]} across${axes.length > 2 ? "; a cell is the best over the settings that are not shown" : ""}`);
  return [h("div", { class: "controls" }, Object.values(choices)), note, described(chart, section)].filter(Boolean);
}

export function table(section) {
  const rows = section.outcomes.map((outcome, point) => {
    const which = indices(section.axes, point);
    const settings = section.axes.map((axis, i) => plain(axis.values[which[i]]));
    return [...settings, ...section.metrics.map(({ values, unit }) => figure(values[point], unit)), outcome === "ok" ? section.bounds[point] : failure(section, point)];
  });
  return { columns: [...section.axes.map(axisName), ...section.metrics.map(({ name }) => name), "bound"], rows };
}
