// Forecast against measurement, a point each, on logarithmic axes: on the line they are equal. What a point belongs to can be chosen; the others stay as a ground.
import * as Plot from "@observablehq/plot";
import { described } from "../described.js";
import { h } from "../dom.js";
import { bytes, count, figure, percent } from "../format.js";
import { classColour } from "../palette.js";
import { summary } from "../errors.js";

const SYMBOLS = ["circle", "square", "triangle", "diamond"];
const COLOURS = 12;
const symbolOf = (index) => SYMBOLS[Math.floor(index / COLOURS) % SYMBOLS.length];
const ALL = "";

const figureOf = (section) => (section.unit === "B" ? bytes : count);
const signed = (ratio) => `${ratio < 0 ? "−" : "+"}${percent(Math.abs(ratio))}`;
const errorOf = ({ measured, forecast }) => forecast / measured - 1;

function textOf(point, section) {
  const text = figureOf(section);
  const range = point.low == null ? "" : `\n80 % of its forecasts: ${text(point.low)} to ${text(point.high)}`;
  return `${point.name}\n${point.run}\n${point.source}\nmeasured ${text(point.measured)}, forecast ${text(point.forecast)}: ${signed(errorOf(point))}${range}${point.fits ? "" : "\ndoes not fit by the forecast"}`;
}

function domain(points) {
  const all = points.flatMap(({ measured, forecast }) => [measured, forecast]);
  return all.length > 0 ? [0.8 * Math.min(...all), 1.25 * Math.max(...all)] : [1, 10];
}

function choice(section, key, state, redraw) {
  const names = section.filters[key];
  const set = (event) => {
    state[key] = event.target.value;
    state.focus = key;
    redraw();
  };
  const option = (value, name) => h("option", { value, selected: (state[key] ?? ALL) === value }, name);
  return h("label", {}, `${key} `, h("select", { "data-filter": key, change: set }, option(ALL, "all"), names.map((name) => option(name, name))));
}

function chart(section, width, chosen) {
  const unit = section.unit === "B" ? 2 ** 30 : 1;
  const [low, high] = domain(section.points);
  const axis = { type: "log", domain: [low / unit, high / unit], grid: true, transform: (value) => value / unit, tickFormat: (value) => figure(value, "") };
  const name = `${section.quantity}${unit === 1 ? "" : ", GiB"}`;
  const sources = section.filters.source;
  const drawn = chosen.map((point) => ({ ...point, title: textOf(point, section), index: sources.indexOf(point.source) }));
  const others = section.points.filter((point) => !chosen.includes(point));
  return Plot.plot({
    width,
    height: Math.min(680, Math.max(340, width * 0.62)),
    marginLeft: 70,
    marginTop: 26,
    marginBottom: 42,
    x: { ...axis, label: `measured ${name}`, ticks: Math.max(2, Math.floor(width / 160)) },
    y: { ...axis, label: `forecast ${name}`, ticks: 6 },
    symbol: { type: "identity" },
    marks: [
      Plot.line([low, high], { x: (d) => d, y: (d) => d, stroke: "var(--soft)" }),
      Plot.dot(others, { x: "measured", y: "forecast", fill: "var(--none)", r: 3, className: "others" }),
      Plot.ruleX(drawn.filter((point) => point.low != null), { x: "measured", y1: "low", y2: "high", stroke: (d) => classColour(d.index), strokeOpacity: 0.6 }),
      Plot.dot(drawn, {
        x: "measured", y: "forecast", symbol: (d) => symbolOf(d.index), fill: (d) => classColour(d.index), fillOpacity: 0.85, stroke: (d) => (d.fits ? "none" : "var(--ink)"), strokeWidth: 1.8, r: 4.2, className: "chosen",
      }),
      Plot.tip(drawn, Plot.pointer({ x: "measured", y: "forecast", title: "title", lineWidth: Math.min(34, width / 16) })),
    ],
  });
}

const SHAPES = { circle: "border-radius:50%", square: "border-radius:1px", triangle: "clip-path:polygon(50% 0,100% 100%,0 100%)", diamond: "transform:rotate(45deg) scale(0.8);border-radius:1px" };

function legend(section, chosen) {
  const entry = (source, index) => {
    const own = chosen.filter((point) => point.source === source);
    const key = h("i", { style: `background:${classColour(index)};${SHAPES[symbolOf(index)]}`, "aria-hidden": "true" });
    return own.length > 0 && h("li", {}, key, source, h("span", {}, `${own.length}, median ${percent(summary(own.map(errorOf)).median)}`));
  };
  return h("ul", { class: "legend" }, section.filters.source.map(entry));
}

export function draw(section, width, state, redraw) {
  const keys = Object.keys(section.filters).filter((key) => section.filters[key].length > 1);
  const choices = Object.fromEntries(keys.map((key) => [key, choice(section, key, state, redraw)]));
  requestAnimationFrame(() => {
    if (state.focus) choices[state.focus].querySelector("select").focus();
    state.focus = null;
  });
  const chosen = section.points.filter((point) => keys.every((key) => (state[key] ?? ALL) === ALL || point[key] === state[key]));
  const { median, mean, largest, bias } = summary(chosen.map(errorOf));
  const words = chosen.length === 0 ? "No row is both." : `${count(chosen.length)} rows: median error ${percent(median)}, mean ${percent(mean)}, largest ${percent(largest)}, bias ${signed(bias)}`;
  const controls = h("div", { class: "controls" }, Object.values(choices), h("output", { role: "status" }, words));
  return [controls, described(chart(section, width, chosen), section), legend(section, chosen)];
}

export function table(section) {
  const text = figureOf(section);
  const rows = section.points.map((point) => [point.name, point.run, point.source, text(point.measured), text(point.forecast), signed(errorOf(point)), point.fits ? "" : "does not fit"]);
  return { columns: ["row", "run", "source", "measured", "forecast", "error", "by the forecast"], rows };
}
