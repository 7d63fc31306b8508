// The judgement as JSON and CSV. See validate.hpp.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "calibration/csv.hpp"
#include "cli/report/validate.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

template <class T>
OrderedJson value_or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson group_json(const Group& group) {
  OrderedJson json = summary_json(group.speed);
  json["rank_correlation"] = value_or_null(group.rank_correlation);
  if (group.coverage) json["coverage"] = *group.coverage;
  if (group.memory.count > 0) json["memory"] = summary_json(group.memory);
  return json;
}

OrderedJson groups_json(const std::map<std::string, Group>& groups) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, group] : groups) json[name] = group_json(group);
  return json;
}

OrderedJson measured_json(const Measured& m) {
  return {{"tokens_per_s_per_gpu", value_or_null(m.tokens_per_s_per_gpu)},
          {"from", m.from},
          {"mfu", value_or_null(m.mfu)},
          {"outcome", m.outcome},
          {"peak_memory_bytes", value_or_null(m.peak_memory_bytes)}};
}

OrderedJson forecast_json(const Forecast& f) {
  return {{"tokens_per_s_per_gpu", f.tokens_per_s_per_gpu},
          {"mfu", f.mfu},
          {"outcome", f.outcome},
          {"peak_allocated_bytes", f.peak_allocated_bytes},
          {"peak_reserved_bytes", f.peak_reserved_bytes},
          {"step_time_s", f.step_time_s},
          {"compute_s", f.compute_s},
          {"comm_s", f.comm_s},
          {"exposed_comm_s", f.exposed_comm_s},
          {"bound", f.bound},
          {"retries_per_step", f.retries_per_step}};
}

OrderedJson row_json(const JudgedRow& row) {
  OrderedJson json = {{"id", row.id},
                      {"source", row.group},
                      {"tier", row.tier},
                      {"gpu", row.gpu},
                      {"n_gpus", row.n_gpus},
                      {"model", row.model},
                      {"measured", measured_json(row.measured)},
                      {"predicted", forecast_json(row.forecast)},
                      {"rel_error", value_or_null(row.error)},
                      {"mfu_rel_error", value_or_null(row.mfu_error)},
                      {"memory_rel_error", value_or_null(row.memory_error)},
                      {"notes", row.notes}};
  if (row.interval) json["interval"] = {{"p10", row.interval->p10}, {"p50", row.interval->p50}, {"p90", row.interval->p90}};
  return json;
}

OrderedJson outcomes_json(const std::vector<JudgedRow>& rows) {
  std::map<std::string, int> counts;
  OrderedJson mismatches = OrderedJson::array();
  for (const JudgedRow& row : rows) {
    if (!row.skipped.empty()) continue;
    ++counts["measured_" + row.measured.outcome + "_predicted_" + row.forecast.outcome];
    if (row.measured.outcome != row.forecast.outcome) mismatches.push_back(row.id);
  }
  OrderedJson json = counts;
  json["mismatches"] = mismatches;
  return json;
}

std::string csv_number(const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : ""; }

}  // namespace

OrderedJson summary_json(const calibration::ErrorSummary& s) {
  return {{"count", s.count}, {"median", s.median}, {"mean", s.mean}, {"p90", s.p90}, {"max", s.max}, {"bias", s.bias}};
}

nlohmann::ordered_json to_json(const Judgement& judgement) {
  OrderedJson rows = OrderedJson::array(), skipped = OrderedJson::array();
  for (const JudgedRow& row : judgement.rows) {
    if (row.skipped.empty()) rows.push_back(row_json(row));
    else skipped.push_back({{"id", row.id}, {"source", row.group}, {"tier", row.tier}, {"reason", row.skipped}});
  }
  return {{"schema", "stepcast.validation/1"},         {"rows", rows},
          {"summary", group_json(judgement.all)},      {"by_source", groups_json(judgement.by_source)},
          {"by_tier", groups_json(judgement.by_tier)}, {"by_gpu", groups_json(judgement.by_gpu)},
          {"outcomes", outcomes_json(judgement.rows)}, {"skipped", skipped}};
}

std::string to_csv(const Judgement& judgement) {
  std::string text =
      "id,source,tier,gpu,n_gpus,model,measured_tokens_per_s_per_gpu,tokens_per_s_per_gpu,rel_error,measured_mfu,mfu,mfu_rel_error,measured_peak_memory_bytes,"
      "peak_allocated_bytes,peak_reserved_bytes,memory_rel_error,measured_outcome,outcome,step_time_s,exposed_comm_s,bound,retries_per_step,skipped,notes\n";
  for (const JudgedRow& r : judgement.rows) {
    const Forecast& f = r.forecast;
    std::string notes;
    for (const std::string& note : r.notes) notes += (notes.empty() ? "" : "; ") + note;
    const std::string cells[] = {r.id, r.group, r.tier, r.gpu, std::to_string(r.n_gpus), r.model};
    for (const std::string& cell : cells) text += calibration::csv_cell(cell) + ",";
    if (!r.skipped.empty()) {
      text += std::string(16, ',') + calibration::csv_cell(r.skipped) + "," + calibration::csv_cell(notes) + "\n";
      continue;
    }
    text += fmt::format("{},{:.6g},{},{},{:.4f},{},{},{},{},{},{},{},{:.6g},{:.6g},{},{},,{}\n", csv_number(r.measured.tokens_per_s_per_gpu),
                        f.tokens_per_s_per_gpu, csv_number(r.error), csv_number(r.measured.mfu), f.mfu, csv_number(r.mfu_error),
                        csv_number(r.measured.peak_memory_bytes), f.peak_allocated_bytes, f.peak_reserved_bytes, csv_number(r.memory_error), r.measured.outcome,
                        f.outcome, f.step_time_s, f.exposed_comm_s, f.bound, f.retries_per_step, calibration::csv_cell(notes));
  }
  return text;
}

}  // namespace stepcast::cli
