// What is wrong with a profiled run: each with its evidence, what to try, and what that could gain.
import { h } from "../dom.js";
import { percent, words } from "../format.js";

function gain(finding) {
  const parts = [];
  if (finding.forecast_gain != null) parts.push(`replayed without it, the profile is ${percent(finding.forecast_gain)} shorter`);
  if (finding.upper_bound_gain != null) parts.push(`at most ${percent(finding.upper_bound_gain)} can be gained`);
  return parts.join("; ");
}

function item(finding) {
  return h(
    "li",
    {},
    h("h3", {}, words(finding.finding), h("span", { class: "share" }, percent(finding.share_of_step))),
    h("div", { class: "meter", "aria-hidden": "true" }, h("i", { style: `width:${Math.min(100, 100 * finding.share_of_step)}%` })),
    h("p", { class: "where" }, `${finding.where}; confidence ${finding.confidence.toFixed(2)}`),
    h("ul", {}, finding.evidence.map((line) => h("li", {}, line))),
    h("p", {}, h("strong", {}, "Try: "), finding.advice),
    gain(finding) && h("p", { class: "where" }, `${gain(finding)}.`),
  );
}

export const body = (section) => (section.findings.length > 0 ? h("ol", { class: "findings-list" }, section.findings.map(item)) : "");
