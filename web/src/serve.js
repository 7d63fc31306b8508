// The page of `stepcast serve`: settings, and the forecast that follows them. Contract of the data: docs/serve.md.
import { h } from "./dom.js";
import { asking, post } from "./live/asking.js";
import { commandPanel } from "./live/command.js";
import { controlPanel } from "./live/controls.js";
import { chosen, difference } from "./live/options.js";
import { sectionElement } from "./section.js";

const QUIET_MS = 700; // before the figures are read out, and before what would fit is searched for
const FIGURES = { "step time": "step_time_s", MFU: "mfu", "tokens/s/GPU": "tokens_per_s_per_gpu", "peak reserved": "peak_reserved_bytes" };
const start = JSON.parse(document.getElementById("data").textContent);
let settings = [];
let accepted = start;
let acceptedSettings = [];
let timer;

const tiles = h("dl", { class: "tiles" });
const strip = h("div", { class: "strip", "aria-hidden": "true" });
const headline = h("p", { class: "headline" });
const notices = h("div", { class: "notices" });
const problem = h("p", { class: "problem", role: "alert" });
const spoken = h("p", { class: "hidden", role: "status" });
const charts = h("div", { class: "charts" });
let sections = [];

function showTiles({ tiles: all, figures }) {
  const note = ({ label, note: text }) => {
    const key = FIGURES[label];
    const change = key && difference(figures[key], start.figures[key]);
    return [text, change && `${change} against the start`].filter(Boolean).join("; ");
  };
  tiles.replaceChildren(...all.map((tile) => h("div", { class: "tile" }, h("dt", {}, tile.label), h("dd", {}, h("strong", {}, tile.value), h("span", {}, note(tile))))));
  strip.replaceChildren(...all.filter(({ label }) => label in FIGURES || label === "outcome").map(({ label, value }) => h("span", {}, h("b", {}, value), ` ${label}`)));
}

function showSections(next) {
  const same = next.length === sections.length && next.every(({ kind, title }, index) => sections[index].kind === kind && sections[index].title === title);
  if (same) return sections.forEach((section, index) => section.update(next[index]));
  sections = next.map((data, index) => ({ kind: data.kind, title: data.title, ...sectionElement({ ...data }, `section-${index + 1}`) }));
  charts.replaceChildren(...sections.map(({ element }) => element));
  sections.forEach(({ draw }) => draw());
}

function show(answer, busy) {
  headline.textContent = answer.headline;
  notices.replaceChildren(...answer.notices.map((text) => h("p", { class: "notice", role: "note" }, text)));
  showTiles(answer);
  showSections(answer.sections);
  panel.follow(answer.controls, busy);
  command.follow(answer);
}

/// What is worth the wait once nothing moves any more.
function whenQuiet(answer, request) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    spoken.textContent = answer.tiles.filter(({ label }) => label in FIGURES || label === "outcome").map(({ label, value }) => `${label} ${value}`).join(", ");
    if (answer.outcome === "out_of_memory" && !request.remedies) ask({ settings, remedies: true });
  }, QUIET_MS);
}

const ask = asking(
  post,
  (answer, request, busy) => {
    accepted = answer;
    acceptedSettings = request.settings;
    problem.textContent = "";
    show(answer, busy);
    whenQuiet(answer, request);
  },
  ({ message }) => {
    problem.textContent = message;
    settings = acceptedSettings;
    panel.follow(accepted.controls, false);
  },
);

const panel = controlPanel(start.controls, (control, value) => {
  settings = chosen(settings, control, value);
  ask({ settings });
});
const command = commandPanel(() => {
  settings = [];
  ask({ settings });
});

document.title = `${start.title}: stepcast serve`;
document.getElementById("page").append(
  h("header", {}, h("p", { class: "brand" }, h("span", { class: "mark", "aria-hidden": "true" }), "stepcast serve"), h("h1", {}, start.title), headline),
  strip,
  h("div", { class: "live" }, h("aside", { "aria-label": "Settings" }, panel.element), h("main", {}, problem, tiles, notices, command.element, charts, spoken)),
  h("footer", {}, `stepcast ${start.version}: the same figures as stepcast run.`),
);
show(start, false);
whenQuiet(start, {});

let drawn = charts.clientWidth;
new ResizeObserver(() =>
  requestAnimationFrame(() => {
    if (charts.clientWidth === drawn) return;
    drawn = charts.clientWidth;
    sections.forEach(({ draw }) => draw());
  }),
).observe(charts);
