// From the device's peak to the MFU: what each loss takes, in points of MFU.
import { described } from "../described.js";
import { percent, time } from "../format.js";
import { steps } from "../waterfall_steps.js";
import { barRows } from "./rows.js";

function colourOf(loss, seconds) {
  if (seconds < 0) return "var(--green)";
  if (loss.startsWith("exposed")) return "var(--orange)";
  if (/^(launch|gaps|data|allocator)/.test(loss)) return "var(--red)";
  return "var(--indigo)";
}

export function draw(section, width) {
  const rows = [
    { label: "the device's peak", value: percent(1), pieces: [{ from: 0, to: 1, fill: "var(--slate)", title: `the whole step: ${time(section.step_time_s)}` }] },
    ...steps(section).map(({ loss, seconds, before, left }) => ({
      label: loss,
      value: `${seconds < 0 ? "+" : "−"}${percent(Math.abs(seconds) / section.step_time_s)}`,
      pieces: [{ from: left, to: before, fill: colourOf(loss, seconds), title: `${loss}: ${time(seconds)}; left: ${percent(left)}` }],
    })),
    { label: "MFU", value: percent(section.mfu), pieces: [{ from: 0, to: section.mfu, fill: "var(--blue)", title: `model FLOPs at peak: ${time(section.ideal_s)}` }] },
  ];
  const top = Math.max(1, ...steps(section).map(({ left }) => left));
  return described(barRows({ rows, width, x: { domain: [0, top], tickFormat: (share) => `${Math.round(100 * share)} %` } }), section);
}

export function table(section) {
  const rows = steps(section).map(({ loss, seconds, left }) => [loss, time(seconds), percent(seconds / section.step_time_s), percent(left)]);
  return { columns: ["loss", "time", "of the step", "left"], rows: [["the device's peak", "–", "–", percent(1)], ...rows] };
}
