// The way from a scenario to the best settings: what stood in the way, what was changed, what it gave.
import { described } from "../described.js";
import { h } from "../dom.js";
import { percent, time } from "../format.js";
import { barRows } from "./rows.js";

const gain = ({ gain: share }) => (share === 0 ? "" : ` (${share > 0 ? "−" : "+"}${percent(Math.abs(share))})`);
const outcome = (decision) => (decision.step_time_s == null ? decision.outcome.replaceAll("_", " ") : `${time(decision.step_time_s)}${gain(decision)}`);

export function draw(section, width) {
  const rows = section.decisions.map((decision, i) => ({
    label: `${i + 1}. ${decision.change}`,
    value: outcome(decision),
    pieces: [{ from: 0, to: decision.step_time_s ?? 0, fill: i === section.decisions.length - 1 ? "var(--green)" : "var(--blue)", title: `${decision.question} ${decision.answer}` }],
  }));
  return described(barRows({ rows, width, x: { tickFormat: time } }), section);
}

export function body(section) {
  return h("ol", { class: "decision-list" }, section.decisions.map((d) => h("li", {}, h("span", {}, `${d.question} ${d.answer}`), h("strong", {}, d.change), h("span", {}, outcome(d)))));
}
