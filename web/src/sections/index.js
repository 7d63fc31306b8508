// The kinds of sections: `draw` a chart, `table` its text alternative, `body` what is text from the beginning.
import * as bars from "./bars.js";
import * as bridge from "./bridge.js";
import * as code from "./code.js";
import * as decisions from "./decisions.js";
import * as findings from "./findings.js";
import * as grid from "./grid.js";
import * as interval from "./interval.js";
import * as memory from "./memory.js";
import * as pareto from "./pareto.js";
import * as parts from "./parts.js";
import * as progression from "./progression.js";
import * as roofline from "./roofline.js";
import * as scaling from "./scaling.js";
import * as scatter from "./scatter.js";
import * as timeline from "./timeline.js";
import * as waterfall from "./waterfall.js";
import { table } from "../table.js";

export const KINDS = {
  bars,
  bridge,
  code,
  decisions,
  findings,
  grid,
  interval,
  memory,
  pareto,
  parts,
  progression,
  roofline,
  scaling,
  scatter,
  timeline,
  waterfall,
  table: { body: (section) => table(section, section.title) },
  folded_table: { table: (section) => section },
};
