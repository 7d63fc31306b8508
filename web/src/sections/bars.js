// One bar for each name.
import { described } from "../described.js";
import { figure } from "../format.js";
import { colour, label } from "../kinds.js";
import { barRows } from "./rows.js";

export function draw(section, width) {
  const rows = section.bars.map(({ name, value, note }) => ({
    label: section.coloured ? label(name) : name,
    value: figure(value, section.unit),
    pieces: [{ from: 0, to: value, fill: colour(section.coloured ? name : "compute"), title: [name, figure(value, section.unit), note].filter(Boolean).join(", ") }],
  }));
  return described(barRows({ rows, width, x: { tickFormat: (value) => figure(value, section.unit) } }), section);
}

export function table(section) {
  return { columns: ["name", "value", "note"], rows: section.bars.map(({ name, value, note }) => [name, figure(value, section.unit), note]) };
}
