// From one step time to another: what made it shorter, and what longer.
import { described } from "../described.js";
import { time, words } from "../format.js";
import { barRows } from "./rows.js";

const signed = (seconds) => `${seconds < 0 ? "−" : "+"}${time(Math.abs(seconds))}`;

/// Parts that change less than this share of the step are one row.
const FINE = 0.0005;

function rows(section) {
  const least = FINE * section.from.seconds;
  const large = section.parts.filter(({ delta_s }) => Math.abs(delta_s) >= least);
  const rest = section.parts.filter((part) => !large.includes(part)).reduce((sum, { delta_s }) => sum + delta_s, 0);
  return rest === 0 ? large : [...large, { part: "all else", delta_s: rest }];
}

export function draw(section, width) {
  let at = section.from.seconds;
  const changes = rows(section).map(({ part, delta_s }) => {
    const piece = { from: at, to: at + delta_s, fill: delta_s < 0 ? "var(--green)" : "var(--red)", title: `${part}: ${signed(delta_s)}` };
    at += delta_s;
    return { label: words(part), value: signed(delta_s), pieces: [piece] };
  });
  const end = ({ name, seconds }, fill) => ({ label: name, value: time(seconds), pieces: [{ from: 0, to: seconds, fill, title: `${name}: ${time(seconds)}` }] });
  return described(barRows({ rows: [end(section.from, "var(--slate)"), ...changes, end(section.to, "var(--blue)")], width, x: { tickFormat: time } }), section);
}

export function table(section) {
  const ends = [[section.from.name, time(section.from.seconds)], [section.to.name, time(section.to.seconds)]];
  return { columns: ["part", "difference"], rows: [ends[0], ...section.parts.map(({ part, delta_s }) => [words(part), signed(delta_s)]), ends[1]] };
}
