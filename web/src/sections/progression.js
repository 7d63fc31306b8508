// How far each stage of a case study gets.
import { described } from "../described.js";
import { count, percent, time } from "../format.js";
import { barRows } from "./rows.js";

export function draw(section, width) {
  const best = Math.max(...section.stages.map((stage) => stage.mfu ?? 0));
  const rows = section.stages.map((stage) => ({
    label: stage.name,
    value: stage.mfu == null ? stage.outcome.replaceAll("_", " ") : percent(stage.mfu),
    pieces: [{ from: 0, to: stage.mfu ?? 0, fill: stage.mfu === best ? "var(--green)" : "var(--blue)", title: `${stage.name}: bound by ${stage.bound}\n${stage.why}` }],
  }));
  return described(barRows({ rows, width, x: { domain: [0, Math.max(0.01, best)], tickFormat: (share) => `${Math.round(100 * share)} %` } }), section);
}

export function table(section) {
  const rows = section.stages.map((stage) => [
    stage.name,
    stage.mfu == null ? stage.outcome.replaceAll("_", " ") : percent(stage.mfu),
    stage.step_time_s == null ? "–" : time(stage.step_time_s),
    stage.tokens_per_s_per_gpu == null ? "–" : count(stage.tokens_per_s_per_gpu),
    stage.bound || "–",
    stage.why,
  ]);
  return { columns: ["stage", "MFU", "step time", "tokens/s/GPU", "bound by", "what changes"], rows };
}
