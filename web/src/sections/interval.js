// How far the step time may be off: the range of most forecasts, and what moves it by itself. All as shares of the forecast's step time.
import { described } from "../described.js";
import { percent, time, words } from "../format.js";
import { barRows } from "./rows.js";

const signed = (share, digits = 2) => `${share < 0 ? "−" : "+"}${(100 * Math.abs(share)).toFixed(digits)} %`;

export function draw(section, width) {
  const of = (seconds) => seconds / section.step_time_s - 1;
  const [low, middle, high] = [section.p10_s, section.p50_s, section.p90_s].map(of);
  const range = {
    label: "80 % of the forecasts",
    value: `${signed(low, 1)} to ${signed(high, 1)}`,
    pieces: [
      { from: low, to: middle, fill: "var(--blue)", title: `a tenth takes less than ${time(section.p10_s)}, half less than ${time(section.p50_s)}` },
      { from: middle, to: high, fill: "var(--cyan)", title: `half takes more than ${time(section.p50_s)}, a tenth more than ${time(section.p90_s)}` },
    ],
  };
  const causes = section.causes.map(({ cause, step_time_s: seconds }) => ({
    label: words(cause),
    value: signed(of(seconds)),
    pieces: [{ from: 0, to: of(seconds), fill: of(seconds) < 0 ? "var(--green)" : "var(--red)", title: `${words(cause)}: ${time(seconds)}` }],
  }));
  return described(barRows({ rows: [range, ...causes], width, x: { tickFormat: (share) => `${share < 0 ? "−" : ""}${percent(Math.abs(share))}` } }), section);
}

export function table(section) {
  const row = (name, seconds) => [name, time(seconds), signed(seconds / section.step_time_s - 1)];
  const forecast = ["the forecast", time(section.step_time_s), "–"];
  const range = [["a tenth takes less", section.p10_s], ["half takes less", section.p50_s], ["a tenth takes more", section.p90_s]].map(([name, seconds]) => row(name, seconds));
  return { columns: ["what", "step time", "against the forecast"], rows: [forecast, ...range, ...section.causes.map(({ cause, step_time_s: seconds }) => row(words(cause), seconds))] };
}
