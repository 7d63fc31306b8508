// Bars made of parts, e.g. what each phase spends on what.
import { described } from "../described.js";
import { h } from "../dom.js";
import { figure } from "../format.js";
import { colour, label } from "../kinds.js";
import { barRows } from "./rows.js";

const names = (section) => [...new Set(section.rows.flatMap((row) => Object.keys(row.parts)))];
const total = (row) => Object.values(row.parts).reduce((sum, value) => sum + value, 0);

/// kinds: [[kind, note]]; `name`: what a kind is called.
export function legend(kinds, name = label) {
  const key = (kind) => h("i", { style: `background:${colour(kind)}`, "aria-hidden": "true" });
  return h("ul", { class: "legend" }, kinds.map(([kind, note]) => h("li", {}, key(kind), name(kind), note && h("span", {}, note))));
}

export function draw(section, width) {
  const rows = section.rows.map((row) => {
    let from = 0;
    const pieces = Object.entries(row.parts).map(([name, value]) => {
      const piece = { from, to: from + value, fill: colour(name), title: `${row.name}: ${name} ${figure(value, section.unit)}` };
      from += value;
      return piece;
    });
    return { label: row.name, value: figure(total(row), section.unit), pieces };
  });
  const chart = described(barRows({ rows, width, x: { tickFormat: (value) => figure(value, section.unit) } }), section);
  return [chart, legend(names(section).map((name) => [name]))];
}

export function table(section) {
  const columns = names(section);
  const rows = section.rows.map((row) => [row.name, ...columns.map((name) => figure(row.parts[name] ?? 0, section.unit)), figure(total(row), section.unit)]);
  return { columns: ["name", ...columns, "total"], rows };
}
