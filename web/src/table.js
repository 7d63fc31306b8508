// A table of figures: the text alternative of each chart, and a section of its own.
import { h } from "./dom.js";

const numeric = /^[-–+]?[\d,.]+( ?(%|s|ms|µs|us|ns|B|KiB|MiB|GiB|TiB|[kMGT]?(FLOP|B)\/s))?$/;
const dash = (cell) => cell === "–" || cell === "-" || cell === "";

/// Columns in which every cell is a figure are aligned right.
export function table({ columns, rows }, caption) {
  const right = columns.map((_, column) => rows.length > 0 && rows.every((row) => numeric.test(row[column]) || dash(row[column])));
  const cells = (row, tag) => row.map((cell, column) => h(tag, { class: right[column] ? "figure" : null, scope: tag === "th" ? "col" : null }, String(cell)));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${caption}` },
    h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, cells(columns, "th"))), h("tbody", {}, rows.map((row) => h("tr", {}, cells(row, "td"))))),
  );
}
