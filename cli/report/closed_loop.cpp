// See closed_loop.hpp.
#include "cli/report/closed_loop.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

std::string milliseconds(double seconds) { return fmt::format("{:.4g}", 1e3 * seconds); }
std::string mebibytes(std::int64_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / (1 << 20)); }

void add(const LoopRow& row, Table& table) {
  const LoopResult &p = row.predicted, &m = row.measured;
  table.add({row.id, std::to_string(row.ranks), milliseconds(p.step_s), milliseconds(m.step_s), fmt::format("{:+.1f}", 100 * row.error()),
             percent_number(row.noise), milliseconds(p.exposed_comm_s), milliseconds(m.exposed_comm_s), mebibytes(p.peaks.allocated_bytes),
             mebibytes(m.peaks.allocated_bytes), fmt::format("{} of {}", row.exact_rounds(), row.rounds.size())});
}

std::string failures(const Loop& loop) {
  std::string text;
  for (const LoopRow& row : loop.rows) {
    if (row.predicted_outcome != "ok") text += row.id + ": the forecast is " + row.predicted_outcome + "\n";
    for (const std::string& failure : row.failures) text += row.id + ": " + failure + "\n";
  }
  return text.empty() ? "" : "\nNot compared:\n" + text;
}

std::string summary_text(const Loop& loop) {
  const LoopSummary s = summarize(loop.rows);
  if (s.step.count == 0) return "";
  std::string text = fmt::format("\nStep time of {} scenarios: error {} % in the median, {} % at most, bias {:+.1f} %; noise of the runs {} % in the median.\n",
                                 s.step.count, percent_number(s.step.median), percent_number(s.step.max), 100 * s.step.bias, percent_number(s.median_noise));
  text += fmt::format("Order: {} of {} pairs whose times differ by more than their noise. Peak memory exact: {} of {}.\n", s.ordered, s.pairs, s.memory_exact,
                      s.step.count);
  return text;
}

OrderedJson result_json(const LoopResult& r) {
  return {{"step_time_s", r.step_s},
          {"exposed_comm_s", r.exposed_comm_s},
          {"peak_allocated_bytes", r.peaks.allocated_bytes},
          {"peak_reserved_bytes", r.peaks.reserved_bytes}};
}

OrderedJson row_json(const LoopRow& row) {
  OrderedJson json = {{"id", row.id}, {"ranks", row.ranks}, {"predicted", result_json(row.predicted)}};
  json["predicted"]["outcome"] = row.predicted_outcome;
  json["failures"] = row.failures;
  json["measured"] = row.failures.empty() ? result_json(row.measured) : OrderedJson();
  json["rel_error"] = row.compared() ? OrderedJson(row.error()) : OrderedJson();
  json["noise"] = row.failures.empty() ? OrderedJson(row.noise) : OrderedJson();
  json["steps"] = row.steps;
  json["memory_exact"] = row.compared() ? OrderedJson(row.memory_exact()) : OrderedJson();
  json["memory_exact_rounds"] = row.compared() ? OrderedJson(row.exact_rounds()) : OrderedJson();
  return json;
}

}  // namespace

std::string to_text(const Loop& loop) {
  Table table({"scenario", "ranks", "step, ms: forecast", "measured", "error, %", "noise, %", "exposed, ms: forecast", "measured", "peak, MiB: forecast",
               "measured", "exact rounds"});
  for (const LoopRow& row : loop.rows) {
    if (row.compared()) add(row, table);
  }
  return table.render() + failures(loop) + summary_text(loop);
}

OrderedJson to_json(const Loop& loop) {
  OrderedJson json = {{"schema", "stepcast.closed_loop/1"}, {"machine", loop.measurements.at("machine")}, {"rows", OrderedJson::array()}};
  for (const LoopRow& row : loop.rows) json["rows"].push_back(row_json(row));
  const LoopSummary s = summarize(loop.rows);
  json["summary"] = {
      {"count", s.step.count}, {"median", s.step.median},        {"mean", s.step.mean}, {"p90", s.step.p90},           {"max", s.step.max},
      {"bias", s.step.bias},   {"median_noise", s.median_noise}, {"pairs", s.pairs},    {"pairs_in_order", s.ordered}, {"memory_exact", s.memory_exact}};
  return json;
}

std::string to_csv(const Loop& loop) {
  std::string text =
      "id,ranks,predicted_outcome,predicted_step_time_s,measured_step_time_s,rel_error,noise,steps,predicted_exposed_comm_s,measured_exposed_comm_s,"
      "predicted_peak_allocated_bytes,measured_peak_allocated_bytes,predicted_peak_reserved_bytes,measured_peak_reserved_bytes,failed\n";
  for (const LoopRow& row : loop.rows) {
    const LoopResult &p = row.predicted, &m = row.measured;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", row.id, row.ranks, row.predicted_outcome, p.step_s, m.step_s,
                        row.compared() ? fmt::format("{}", row.error()) : "", row.noise, row.steps, p.exposed_comm_s, m.exposed_comm_s, p.peaks.allocated_bytes,
                        m.peaks.allocated_bytes, p.peaks.reserved_bytes, m.peaks.reserved_bytes, row.failures.empty() ? 0 : 1);
  }
  return text;
}

}  // namespace stepcast::cli
