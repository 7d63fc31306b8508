// Bars made of parts, e.g. what each phase spends on what.
import { described } from "../described.js";
import { h } from "../dom.js";
import { figure } from "../format.js";
import { colour, label } from "../kinds.js";
import { classColour } from "../palette.js";
import { barRows } from "./rows.js";

const names = (section) => [...new Set(section.rows.flatMap((row) => Object.keys(row.parts)))];
const total = (row) => Object.values(row.parts).reduce((sum, value) => sum + value, 0);

/// entries: [{fill, name, note}].
function keys(entries) {
  const key = (fill) => h("i", { style: `background:${fill}`, "aria-hidden": "true" });
  return h("ul", { class: "legend" }, entries.map(({ fill, name, note }) => h("li", {}, key(fill), name, note && h("span", {}, note))));
}

/// kinds: [[kind, note]]; `name`: what a kind is called.
export const legend = (kinds, name = label) => keys(kinds.map(([kind, note]) => ({ fill: colour(kind), name: name(kind), note })));
/// Of classes that have no colours of their own.
export const classLegend = (names, notes = []) => keys(names.map((name, index) => ({ fill: classColour(index), name, note: notes[index] })));

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
