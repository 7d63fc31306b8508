// See question_sections.hpp.
#include "cli/page/question_sections.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

constexpr std::size_t kCausesShown = 10;

std::string words_of_roof(const RooflineRow& row) {
  return fmt::format("{} attain {} of what {} allows", row.kernels, percent_text(row.attained()),
                     row.compute_bound() ? "the device's peak" : "DRAM's bandwidth");
}

std::string words_of_loss(const std::vector<ScalingRow>& rows) {
  const auto ran = [](const ScalingRow& row) { return row.outcome == "ok"; };
  const auto first = std::find_if(rows.begin(), rows.end(), ran), last = std::find_if(rows.rbegin(), rows.rend(), ran).base();
  if (first == rows.end()) return "None of these clusters can run it.";
  const ScalingRow& end = *(last - 1);
  return fmt::format("From {} to {} nodes, each GPU with the same batch: {} of the tokens/s/GPU, {} of the step is exposed communication.", first->nodes,
                     end.nodes, percent_text(end.efficiency), percent_text(end.exposed_comm_s / end.step_time_s));
}

}  // namespace

OrderedJson interval_section(const Report& r) {
  const IntervalRow& i = r.interval;
  const std::string left_out = i.left_out > 0 ? fmt::format(" {} that do not fit into memory are left out.", i.left_out) : "";
  OrderedJson json =
      section("interval", "How sure the step time is",
              fmt::format("80 % of {} forecasts, with constants drawn from their spreads (seed {}), lie between {} and {}.{} Below: what moves the "
                          "step time most if it alone is one standard deviation above its value.",
                          i.members, i.seed, time_text(i.step_time_s.p10), time_text(i.step_time_s.p90), left_out));
  json["step_time_s"] = r.step_time_s;
  json["p10_s"] = i.step_time_s.p10;
  json["p50_s"] = i.step_time_s.p50;
  json["p90_s"] = i.step_time_s.p90;
  json["causes"] = OrderedJson::array();
  for (std::size_t c = 0; c < std::min(kCausesShown, i.causes.size()); ++c)
    json["causes"].push_back({{"cause", i.causes[c].name}, {"step_time_s", i.causes[c].step_time_s}});
  return json;
}

OrderedJson cost_section(const Cost& cost) {
  const std::string range = cost.relative ? " The range: 80 % of the forecasts with constants drawn from their spreads." : "";
  OrderedJson json =
      section("table", fmt::format("Training on {} tokens", count_text(cost.asked.tokens)), "At the forecast speed, without interruptions." + range);
  json["columns"] = {"figure", "forecast"};
  if (cost.relative) json["columns"].push_back("80 % of the forecasts");
  json["rows"] = OrderedJson::array();
  for (const CostLine& line : lines_of(cost)) {
    json["rows"].push_back({line.name, line.value});
    if (cost.relative) json["rows"].back().push_back(line.range);
  }
  return json;
}

OrderedJson roofline_section(const Roofline& roofline, std::int64_t micro_batch) {
  const auto counted = [](const RooflineRow& row) { return row.flops > 0; };
  const auto longest = std::find_if(roofline.rows.begin(), roofline.rows.end(), counted);
  std::string text = longest == roofline.rows.end() ? "" : words_of_roof(*longest) + ". ";
  double moving = 0;
  for (const RooflineRow& row : roofline.rows) moving += counted(row) ? 0 : row.time_s;
  text += fmt::format(
      "Kernels that only move data take {}; their roof is DRAM's bandwidth, and they stand in the lower chart alone. Small dots: the same with other "
      "micro-batches, "
      "whether they fit or not.",
      time_text(moving));
  OrderedJson json = section("roofline", "Roofline", text);
  json["micro_batch"] = micro_batch;
  json.update(to_json(roofline));
  return json;
}

OrderedJson scaling_section(const std::vector<ScalingRow>& rows) {
  OrderedJson json = section("scaling", "By number of nodes", words_of_loss(rows));
  json["rows"] = to_json(rows);
  return json;
}

OrderedJson answers_section(const Answers& answers) {
  OrderedJson json =
      section("table", "What must be true", answers.ran ? "Each change by itself, simulated." : "The scenario does not run: only what fits can be said.");
  json["columns"] = {"question", "change", "answer"};
  json["rows"] = OrderedJson::array();
  for (const AnswerLine& line : lines_of(answers)) json["rows"].push_back({line.question, line.change, line.answer});
  return json;
}

}  // namespace stepcast::cli
