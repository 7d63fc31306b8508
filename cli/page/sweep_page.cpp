// See sweep_page.hpp.
#include "cli/page/sweep_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

constexpr std::size_t kGridPoints = 20'000, kDrawnPoints = 1'500;  // of a page that opens at once

std::string words_of(const planner::Grid& grid, std::size_t point) {
  std::string words;
  for (const std::string& set : grid.sets(point)) words += (words.empty() ? "" : ", ") + set.substr(set.find_last_of('/', set.find('=')) + 1);
  return words;
}

OrderedJson column(const std::vector<PointRow>& rows, const auto& value_of) {
  OrderedJson values = OrderedJson::array();
  for (const PointRow& row : rows) values.push_back(value_of(row));
  return values;
}

OrderedJson grid_section(const planner::Grid& grid, const std::vector<PointRow>& rows) {
  const auto known = [](bool is, auto value) { return is ? OrderedJson(value) : OrderedJson(nullptr); };
  OrderedJson json = section("grid", "What was varied", "");
  json["axes"] = OrderedJson::array();
  for (const planner::Axis& axis : grid.axes()) json["axes"].push_back({{"pointer", axis.pointer}, {"values", axis.values}});
  json["outcomes"] = column(rows, [](const PointRow& r) { return r.outcome; });
  json["bounds"] = column(rows, [](const PointRow& r) { return r.bound; });
  json["missing_bytes"] = column(rows, [&](const PointRow& r) { return known(r.outcome == "out_of_memory", r.missing_bytes); });
  OrderedJson metrics = OrderedJson::array();
  const auto add = [&](const char* name, const char* unit, bool high, const auto& value_of) {
    metrics.push_back({{"name", name}, {"unit", unit}, {"high_is_good", high}, {"values", column(rows, value_of)}});
  };
  if (std::any_of(rows.begin(), rows.end(), [](const PointRow& r) { return r.has_mfu && r.outcome == "ok"; }))
    add("MFU", "share", true, [&](const PointRow& r) { return known(r.outcome == "ok" && r.has_mfu, r.mfu); });
  add("tokens/s/GPU", "", true, [&](const PointRow& r) { return known(r.outcome == "ok", r.tokens_per_s_per_gpu); });
  add("step time", "s", false, [&](const PointRow& r) { return known(r.outcome == "ok", r.step_time_s); });
  add("memory headroom", "B", true, [&](const PointRow& r) { return known(r.has_headroom, r.headroom_bytes); });
  add("exposed communication", "s", false, [&](const PointRow& r) { return known(r.outcome == "ok", r.exposed_comm_s); });
  json["metrics"] = std::move(metrics);
  return json;
}

/// Index of the fastest point that ran, or none.
std::size_t fastest(const std::vector<PointRow>& rows) {
  std::size_t best = rows.size();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].outcome == "ok" && (best == rows.size() || rows[i].tokens_per_s_per_gpu > rows[best].tokens_per_s_per_gpu)) best = i;
  return best;
}

/// Points may differ in tokens per step: then their step times don't compare, the time for a token does.
bool same_tokens(const std::vector<PointRow>& rows) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const PointRow& row : rows) {
    if (row.outcome != "ok") continue;
    low = std::min(low, row.step_time_s * row.tokens_per_s_per_gpu);
    high = std::max(high, row.step_time_s * row.tokens_per_s_per_gpu);
  }
  return high <= low * (1 + 1e-9);
}

std::vector<ParetoPoint> pareto_points(const planner::Grid& grid, const std::vector<PointRow>& rows, bool per_step) {
  std::vector<ParetoPoint> points;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PointRow& row = rows[i];
    if (row.outcome == "ok" && row.has_headroom && row.tokens_per_s_per_gpu > 0)
      points.push_back({per_step ? row.step_time_s : 1 / row.tokens_per_s_per_gpu, row.headroom_bytes, words_of(grid, i)});
  }
  mark_front(points);
  return points;
}

void add_tiles(const planner::Grid& grid, const std::vector<PointRow>& rows, Page& page) {
  const auto ends_as = [&](const char* outcome) {
    return count_text(static_cast<double>(std::count_if(rows.begin(), rows.end(), [&](const PointRow& row) { return row.outcome == outcome; })));
  };
  page.tiles = {{"points", count_text(static_cast<double>(rows.size())), fmt::format("{} settings varied", grid.axes().size())},
                {"out of memory", ends_as("out_of_memory"), ends_as("refused") + " refused"}};
  const std::size_t best = fastest(rows);
  if (best == rows.size()) return;
  page.tiles.push_back({"fastest, tokens/s/GPU", count_text(rows[best].tokens_per_s_per_gpu), words_of(grid, best)});
  page.tiles.push_back({"its step time", time_text(rows[best].step_time_s), "bound by " + rows[best].bound});
  if (rows[best].has_mfu) page.tiles.push_back({"its MFU", percent_text(rows[best].mfu), ""});
  if (rows[best].has_headroom) page.tiles.push_back({"its headroom", bytes_text(rows[best].headroom_bytes), ""});
}

}  // namespace

void mark_front(std::vector<ParetoPoint>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return points[a].time != points[b].time ? points[a].time < points[b].time : points[a].headroom_bytes > points[b].headroom_bytes;
  });
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (const std::size_t i : order) {
    points[i].on_front = points[i].headroom_bytes > most;
    most = std::max(most, points[i].headroom_bytes);
  }
}

OrderedJson pareto_section(const std::vector<ParetoPoint>& points, const std::string& label) {
  std::vector<ParetoPoint> drawn = points;
  std::stable_sort(drawn.begin(), drawn.end(), [](const ParetoPoint& a, const ParetoPoint& b) { return a.time < b.time; });
  std::size_t others = 0;
  std::erase_if(drawn, [&](const ParetoPoint& point) { return !point.on_front && ++others > kDrawnPoints; });
  const auto front = std::count_if(drawn.begin(), drawn.end(), [](const ParetoPoint& point) { return point.on_front; });
  OrderedJson json =
      section("pareto", fmt::format("Memory headroom against {}", label), fmt::format("{} of {} points are beaten by none in both.", front, points.size()));
  json["label"] = label;
  json["points"] = OrderedJson::array();
  for (const ParetoPoint& p : drawn)
    json["points"].push_back({{"time_s", p.time}, {"headroom_bytes", p.headroom_bytes}, {"words", p.words}, {"front", p.on_front}});
  return json;
}

Page sweep_page(const std::string& scenario, const planner::Grid& grid, const std::vector<PointRow>& rows) {
  Page page{"sweep", scenario, "", {}, {}, {}};
  for (const planner::Axis& axis : grid.axes())
    page.headline += fmt::format("{}{} ({} values)", page.headline.empty() ? "" : " x ", axis.pointer, axis.values.size());
  add_tiles(grid, rows, page);
  if (rows.size() <= kGridPoints) page.sections.push_back(grid_section(grid, rows));
  else page.notices.push_back(fmt::format("More than {} points: their grid is in sweep.csv only.", kGridPoints));
  const bool per_step = same_tokens(rows);
  const std::vector<ParetoPoint> points = pareto_points(grid, rows, per_step);
  if (points.size() > 1) page.sections.push_back(pareto_section(points, per_step ? "step time" : "time for a token of a GPU"));
  if (const std::size_t best = fastest(rows); best != rows.size() && !page.sections.empty() && page.sections.front()["kind"] == "grid")
    page.sections.front()["text"] = fmt::format("The fastest: {}, {} tokens/s/GPU.", words_of(grid, best), count_text(rows[best].tokens_per_s_per_gpu));
  return page;
}

}  // namespace stepcast::cli
