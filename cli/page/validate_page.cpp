// See validate_page.hpp.
#include "cli/page/validate_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

constexpr std::size_t kWorstShown = 20;

std::string error_text(double ratio) { return fmt::format("{:+.1f} %", 100 * ratio); }

std::string run_words(const JudgedRow& row) { return fmt::format("{} on {} x {}", row.model, row.n_gpus, row.gpu); }

template <class Wanted>
std::vector<const JudgedRow*> rows_where(const Judgement& j, Wanted wanted) {
  std::vector<const JudgedRow*> rows;
  for (const JudgedRow& row : j.rows)
    if (wanted(row)) rows.push_back(&row);
  return rows;
}

std::vector<const JudgedRow*> judged_rows(const Judgement& j) {
  return rows_where(j, [](const JudgedRow& row) { return row.error.has_value(); });
}

std::vector<Tile> judgement_tiles(const Judgement& j) {
  const calibration::ErrorSummary& s = j.all.speed;
  const auto without = rows_where(j, [](const JudgedRow& row) { return !row.skipped.empty(); }).size();
  std::vector<Tile> tiles = {{"rows judged", std::to_string(s.count), fmt::format("{} without a forecast", without)}};
  if (s.count == 0) return tiles;
  tiles.push_back({"median error", percent_text(s.median), "of tokens/s/GPU, either way"});
  tiles.push_back({"mean error", percent_text(s.mean), ""});
  tiles.push_back({"90 % of rows within", percent_text(s.p90), "the largest: " + percent_text(s.max)});
  tiles.push_back({"bias", error_text(s.bias), "above zero: forecasts are too fast"});
  if (j.all.rank_correlation) tiles.push_back({"rank correlation", fmt::format("{:.3f}", *j.all.rank_correlation), "forecast against measured"});
  if (j.all.coverage) tiles.push_back({"within their interval", percent_text(*j.all.coverage), "P10 to P90"});
  if (j.all.memory.count > 0) tiles.push_back({"median error of memory", percent_text(j.all.memory.median), fmt::format("{} rows", j.all.memory.count)});
  return tiles;
}

/// The values that a reader can choose points by.
OrderedJson filters(const std::vector<const JudgedRow*>& rows) {
  std::set<std::string> sources, gpus, tiers;
  for (const JudgedRow* row : rows) {
    sources.insert(row->group);
    gpus.insert(row->gpu);
    tiers.insert(row->tier);
  }
  return {{"source", sources}, {"gpu", gpus}, {"tier", tiers}};
}

OrderedJson point_of(const JudgedRow& row, double measured, double forecast) {
  return {{"name", row.id},   {"run", run_words(row)}, {"source", row.group},  {"gpu", row.gpu},
          {"tier", row.tier}, {"measured", measured},  {"forecast", forecast}, {"fits", row.forecast.outcome == "ok"}};
}

/// Points of a quantity, which are to be added, with what they can be chosen by.
OrderedJson scatter(const char* title, const char* text, const char* quantity, const char* unit, const std::vector<const JudgedRow*>& rows) {
  OrderedJson json = section("scatter", title, text);
  json["quantity"] = quantity;
  json["unit"] = unit;
  json["filters"] = filters(rows);
  json["points"] = OrderedJson::array();
  return json;
}

OrderedJson speed_section(const Judgement& j) {
  const std::vector<const JudgedRow*> rows = judged_rows(j);
  OrderedJson json =
      scatter("Forecast against measurement",
              "On the line a forecast is exact, above it too fast. A ring marks a run that ran but does not fit by the forecast; a line through a "
              "point the range of 80 % of its forecasts, where they were asked for.",
              "tokens/s/GPU", "", rows);
  for (const JudgedRow* row : rows) {
    json["points"].push_back(point_of(*row, *row->measured.tokens_per_s_per_gpu, row->forecast.tokens_per_s_per_gpu));
    if (row->interval) json["points"].back().update({{"low", row->interval->p10}, {"high", row->interval->p90}});
  }
  return json;
}

/// What was measured is one of several quantities by row; the forecast is of the same one.
OrderedJson peaks_section(const Judgement& j) {
  const auto rows = rows_where(j, [](const JudgedRow& row) { return row.memory_error.has_value(); });
  OrderedJson json = scatter("Peak memory",
                             "Above the line the forecast is too large. Allocated, active, reserved or all of the device's memory: each row is compared with "
                             "what its source measured.",
                             "peak memory", "B", rows);
  for (const JudgedRow* row : rows) {
    const double measured = *row->measured.peak_memory_bytes;
    json["points"].push_back(point_of(*row, measured, measured * (1 + *row->memory_error)));
  }
  return json;
}

OrderedJson errors_section(const Judgement& j) {
  OrderedJson json = section("table", "Errors of tokens/s/GPU", "Sizes of the errors of the rows of each kind, and their median with its sign as the bias.");
  json["columns"] = {"rows of", "rows", "median", "mean", "P90", "largest", "bias", "rank correlation"};
  json["rows"] = OrderedJson::array();
  const auto add = [&json](const std::string& name, const Group& group) {
    const calibration::ErrorSummary& s = group.speed;
    if (s.count == 0) return;
    json["rows"].push_back({name, std::to_string(s.count), percent_text(s.median), percent_text(s.mean), percent_text(s.p90), percent_text(s.max),
                            error_text(s.bias), group.rank_correlation ? fmt::format("{:.3f}", *group.rank_correlation) : "-"});
  };
  for (const auto& [name, group] : j.by_source) add(name, group);
  for (const auto& [name, group] : j.by_tier) add("tier " + name, group);
  for (const auto& [name, group] : j.by_gpu) add("GPU " + name, group);
  add("all", j.all);
  return json;
}

OrderedJson worst_section(const Judgement& j) {
  std::vector<const JudgedRow*> rows = judged_rows(j);
  std::stable_sort(rows.begin(), rows.end(), [](const JudgedRow* a, const JudgedRow* b) { return std::abs(*a->error) > std::abs(*b->error); });
  rows.resize(std::min(rows.size(), kWorstShown));
  OrderedJson json = section("table", "Worst rows", fmt::format("The {} with the largest errors of tokens/s/GPU.", rows.size()));
  json["columns"] = {"row", "run", "source", "measured", "forecast", "error", "bound by", "outcome"};
  json["rows"] = OrderedJson::array();
  for (const JudgedRow* row : rows)
    json["rows"].push_back({row->id, run_words(*row), row->group, count_text(*row->measured.tokens_per_s_per_gpu),
                            count_text(row->forecast.tokens_per_s_per_gpu), error_text(*row->error), row->forecast.bound, row->forecast.outcome});
  return json;
}

OrderedJson skipped_section(const std::vector<const JudgedRow*>& rows) {
  OrderedJson json = section("folded_table", "Rows without a forecast", fmt::format("{} rows, each with the reason.", rows.size()));
  json["columns"] = {"row", "source", "reason"};
  json["rows"] = OrderedJson::array();
  for (const JudgedRow* row : rows) json["rows"].push_back({row->id, row->group, row->skipped});
  return json;
}

}  // namespace

Page page_of(const Judgement& j, const std::string& table) {
  Page page{"validate", table, "Forecasts against measured runs", judgement_tiles(j), {}, {}};
  if (j.all.speed.count > 0) page.sections = {speed_section(j), errors_section(j), worst_section(j)};
  else page.notices.emplace_back("No row has both a measured and a forecast speed.");
  if (j.all.memory.count > 0) page.sections.push_back(peaks_section(j));
  if (const auto skipped = rows_where(j, [](const JudgedRow& row) { return !row.skipped.empty(); }); !skipped.empty())
    page.sections.push_back(skipped_section(skipped));
  return page;
}

}  // namespace stepcast::cli
