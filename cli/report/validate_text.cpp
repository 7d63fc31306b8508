// The judgement as text. See validate.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/report/table.hpp"
#include "cli/report/validate.hpp"

namespace stepcast::cli {
namespace {

constexpr std::size_t kWorstRows = 20, kReasons = 40;

std::string signed_percent(double ratio) { return fmt::format("{:+.1f}", 100 * ratio); }

void add_group(const std::string& name, const Group& group, Table& table) {
  const calibration::ErrorSummary& s = group.speed;
  if (s.count == 0) return;
  table.add({name, std::to_string(s.count), percent_number(s.median), percent_number(s.mean), percent_number(s.p90), percent_number(s.max),
             signed_percent(s.bias), group.rank_correlation ? fmt::format("{:.3f}", *group.rank_correlation) : "-"});
}

std::string speed_table(const Judgement& j) {
  Table table({"tokens/s/GPU, error in %", "rows", "median", "mean", "p90", "max", "bias", "rank corr."});
  for (const auto& [name, group] : j.by_source) add_group(name, group, table);
  for (const auto& [name, group] : j.by_tier) add_group("tier " + name, group, table);
  for (const auto& [name, group] : j.by_gpu) add_group("gpu " + name, group, table);
  add_group("all", j.all, table);
  return table.render();
}

/// How often what was measured lies between P10 and P90.
std::string coverage_table(const Judgement& j) {
  if (!j.all.coverage) return "";
  Table table({"measured within P10 to P90", "rows", "share, %"});
  const auto add = [&](const std::string& name, const Group& group) {
    if (group.coverage) table.add({name, std::to_string(group.speed.count), percent_number(*group.coverage)});
  };
  for (const auto& [name, group] : j.by_source) add(name, group);
  for (const auto& [name, group] : j.by_tier) add("tier " + name, group);
  add("all", j.all);
  return "\n" + table.render();
}

std::string memory_table(const Judgement& j) {
  Table table({"peak memory, error in %", "rows", "median", "mean", "p90", "max", "bias"});
  const auto add = [&](const std::string& name, const calibration::ErrorSummary& s) {
    if (s.count > 0)
      table.add({name, std::to_string(s.count), percent_number(s.median), percent_number(s.mean), percent_number(s.p90), percent_number(s.max),
                 signed_percent(s.bias)});
  };
  for (const auto& [name, group] : j.by_source) add(name, group.memory);
  add("all", j.all.memory);
  return j.all.memory.count > 0 ? "\n" + table.render() : "";
}

std::string worst_rows(const Judgement& j) {
  std::vector<const JudgedRow*> rows;
  for (const JudgedRow& row : j.rows) {
    if (row.error) rows.push_back(&row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const JudgedRow* a, const JudgedRow* b) { return std::abs(*a->error) > std::abs(*b->error); });
  if (rows.size() > kWorstRows) rows.resize(kWorstRows);
  Table table({"worst rows", "model", "gpus", "measured", "forecast", "error %", "bound", "outcome"}, {0, 1, 6, 7});
  for (const JudgedRow* r : rows) {
    table.add({r->id, r->model, fmt::format("{} {}", r->n_gpus, r->gpu), count_text(*r->measured.tokens_per_s_per_gpu),
               count_text(r->forecast.tokens_per_s_per_gpu), signed_percent(*r->error), r->forecast.bound, r->forecast.outcome});
  }
  return rows.empty() ? "" : "\n" + table.render();
}

std::string outcomes(const Judgement& j) {
  std::map<std::string, std::vector<std::string>> ids;
  for (const JudgedRow& row : j.rows) {
    if (row.skipped.empty()) ids["measured " + row.measured.outcome + ", forecast " + row.forecast.outcome].push_back(row.id);
  }
  std::string text = "\nOutcomes\n";
  for (const auto& [what, rows] : ids) {
    text += fmt::format("  {}: {}\n", what, rows.size());
    if (what == "measured ok, forecast ok" || what == "measured out_of_memory, forecast out_of_memory") continue;
    std::string list;
    for (const std::string& id : rows) list += (list.empty() ? "" : ", ") + id;
    text += wrapped(list, 6);
  }
  return text;
}

std::string skipped(const Judgement& j) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // in the order of the table
  for (const JudgedRow& row : j.rows) {
    if (row.skipped.empty()) continue;
    const std::string prefix = row.id + ": ";
    const std::string reason = row.skipped.starts_with(prefix) ? row.skipped.substr(prefix.size()) : row.skipped;
    auto at = std::find_if(reasons.begin(), reasons.end(), [&](const auto& known) { return known.first == reason; });
    if (at == reasons.end()) at = reasons.insert(reasons.end(), {reason, {}});
    at->second.push_back(row.id);
  }
  if (reasons.empty()) return "";
  std::string text = "\nRows without a forecast\n";
  for (std::size_t i = 0; i < std::min(reasons.size(), kReasons); ++i) {
    std::string list;
    for (const std::string& id : reasons[i].second) list += (list.empty() ? "" : ", ") + id;
    text += fmt::format("  {} ({})\n", reasons[i].first, reasons[i].second.size()) + wrapped(list, 6);
  }
  return text;
}

}  // namespace

std::string to_text(const Judgement& judgement) {
  return speed_table(judgement) + coverage_table(judgement) + memory_table(judgement) + outcomes(judgement) + worst_rows(judgement) + skipped(judgement);
}

}  // namespace stepcast::cli
