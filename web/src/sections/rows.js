// Rows of horizontal bars, the form of most charts here: a label, pieces of a bar, and a figure behind it. Where there is little room the label stands above its bar.
import * as Plot from "@observablehq/plot";
import { shortened, textWidth } from "../text_width.js";

const NARROW = 620;
const WIDEST_LABEL = 330;

/// rows: [{label, value, pieces: [{from, to, fill, title}]}]. `x`: options of the axis; `marks`: more marks, below the bars.
export function barRows({ rows, width, x, marks = [] }) {
  const narrow = width < NARROW;
  const longest = Math.max(...rows.map((row) => textWidth(row.label)));
  const marginLeft = narrow ? 4 : Math.min(WIDEST_LABEL, longest + 12);
  const marginRight = Math.max(...rows.map((row) => textWidth(row.value))) + 10;
  const names = rows.map((_, index) => index); // labels may be alike
  const pieces = rows.flatMap((row, index) => row.pieces.map((piece) => ({ ...piece, index })));
  const ends = rows.map((row, index) => ({ index, label: row.label, value: row.value, end: Math.max(0, ...row.pieces.map((piece) => Math.max(piece.from, piece.to))) }));
  const rowHeight = narrow ? 44 : 27;
  return Plot.plot({
    width,
    height: rows.length * rowHeight + 34,
    marginLeft,
    marginRight,
    marginTop: 4,
    marginBottom: 30,
    x: { axis: null, ...x },
    y: { type: "band", domain: names, axis: null, paddingInner: 0.28, paddingOuter: 0.1 },
    marks: [
      Plot.axisX({ ticks: Math.max(2, Math.floor(width / 130)), tickSize: 0, tickFormat: x.tickFormat, label: null }),
      Plot.gridX({ ticks: Math.max(2, Math.floor(width / 130)) }),
      ...marks,
      Plot.barX(pieces, { x1: "from", x2: "to", y: "index", fill: "fill", title: "title", insetTop: narrow ? 17 : 0, rx: 2 }),
      Plot.ruleX([0]),
      narrow
        ? Plot.text(ends, { y: "index", text: (d) => shortened(d.label, width - 8), textAnchor: "start", frameAnchor: "left", dx: 1, dy: -11 })
        : Plot.text(ends, { y: "index", text: (d) => shortened(d.label, marginLeft - 8), textAnchor: "end", dx: -8, frameAnchor: "left", title: "label" }),
      Plot.text(ends, { x: "end", y: "index", text: "value", textAnchor: "start", dx: 6, dy: narrow ? 8 : 0, fontWeight: 600 }),
    ],
  });
}
