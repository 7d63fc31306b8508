// See sweep_page.hpp.
#include "cli/page/sweep_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

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

OrderedJson known_or_null(bool is, const OrderedJson& value) { return is ? value : OrderedJson(nullptr); }

}  // namespace

void mark_front(std::vector<ParetoPoint>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(points[a].time, -points[a].headroom_bytes, a) < std::tuple(points[b].time, -points[b].headroom_bytes, b);
  });
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (const std::size_t i : order) {
    points[i].on_front = points[i].headroom_bytes > most;
    most = std::max(most, points[i].headroom_bytes);
  }
}

OrderedJson pareto_section(const std::vector<ParetoPoint>& points, const std::string& label, std::size_t of) {
  std::vector<ParetoPoint> drawn = points;
  std::stable_sort(drawn.begin(), drawn.end(), [](const ParetoPoint& a, const ParetoPoint& b) { return a.time < b.time; });
  std::size_t others = 0;
  std::erase_if(drawn, [&](const ParetoPoint& point) { return !point.on_front && ++others > kDrawnPoints; });
  const auto front = std::count_if(drawn.begin(), drawn.end(), [](const ParetoPoint& point) { return point.on_front; });
  OrderedJson json = section("pareto", fmt::format("Memory headroom against {}", label), fmt::format("{} of {} points are beaten by none in both.", front, of));
  json["label"] = label;
  json["points"] = OrderedJson::array();
  for (const ParetoPoint& p : drawn)
    json["points"].push_back({{"time_s", p.time}, {"headroom_bytes", p.headroom_bytes}, {"words", p.words}, {"front", p.on_front}});
  return json;
}

SweepPage::SweepPage(std::string scenario, const planner::Grid& grid) : scenario_(std::move(scenario)), grid_(grid) {}

void SweepPage::add(std::size_t point, const PointRow& row) {
  ++points_;
  if (row.outcome == "out_of_memory") ++out_of_memory_;
  if (row.outcome == "refused") ++refused_;
  if (grid_.size() <= kGridPoints) add_to_grid(row);
  if (row.outcome != "ok") return;
  if (!fastest_ || row.tokens_per_s_per_gpu > fastest_->second.tokens_per_s_per_gpu) fastest_ = {point, row};
  fewest_tokens_ = std::min(fewest_tokens_, row.step_time_s * row.tokens_per_s_per_gpu);
  most_tokens_ = std::max(most_tokens_, row.step_time_s * row.tokens_per_s_per_gpu);
  if (!row.has_headroom || row.tokens_per_s_per_gpu <= 0) return;
  ++candidates_seen_;
  candidates_.push_back({point, row.step_time_s, 1 / row.tokens_per_s_per_gpu, row.headroom_bytes});
  if (candidates_.size() > 4 * kDrawnPoints && candidates_.size() > 2 * kept_) {
    candidates_ = lasting();
    kept_ = candidates_.size();
  }
}

void SweepPage::add_to_grid(const PointRow& row) {
  const bool ok = row.outcome == "ok", mfu = ok && row.has_mfu;
  any_mfu_ = any_mfu_ || mfu;
  columns_["outcomes"].push_back(row.outcome);
  columns_["bounds"].push_back(row.bound);
  columns_["missing_bytes"].push_back(known_or_null(row.outcome == "out_of_memory", row.missing_bytes));
  columns_["MFU"].push_back(known_or_null(mfu, row.mfu));
  columns_["tokens/s/GPU"].push_back(known_or_null(ok, row.tokens_per_s_per_gpu));
  columns_["step time"].push_back(known_or_null(ok, row.step_time_s));
  columns_["memory headroom"].push_back(known_or_null(row.has_headroom, row.headroom_bytes));
  columns_["exposed communication"].push_back(known_or_null(ok, row.exposed_comm_s));
}

OrderedJson SweepPage::grid_section() const {
  const std::string best =
      fastest_ ? fmt::format("The fastest: {}, {} tokens/s/GPU.", words_of(grid_, fastest_->first), count_text(fastest_->second.tokens_per_s_per_gpu)) : "";
  OrderedJson json = section("grid", "What was varied", best);
  json["axes"] = OrderedJson::array();
  for (const planner::Axis& axis : grid_.axes()) json["axes"].push_back({{"pointer", axis.pointer}, {"values", axis.values}});
  for (const char* name : {"outcomes", "bounds", "missing_bytes"}) json[name] = columns_[name];
  json["metrics"] = OrderedJson::array();
  const auto add = [&](const char* name, const char* unit, bool high) {
    json["metrics"].push_back({{"name", name}, {"unit", unit}, {"high_is_good", high}, {"values", columns_[name]}});
  };
  if (any_mfu_) add("MFU", "share", true);
  add("tokens/s/GPU", "", true);
  add("step time", "s", false);
  add("memory headroom", "B", true);
  add("exposed communication", "s", false);
  return json;
}

std::vector<SweepPage::Candidate> SweepPage::lasting() const {
  std::vector<Candidate> order = candidates_, kept;
  std::sort(order.begin(), order.end(), [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.token_s, -a.headroom_bytes, a.point) < std::tuple(b.token_s, -b.headroom_bytes, b.point);
  });
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  std::size_t others = 0;
  for (const Candidate& candidate : order) {  // what is beaten stays beaten, and of the beaten the fastest are drawn
    if (candidate.headroom_bytes > most || ++others <= kDrawnPoints) kept.push_back(candidate);
    most = std::max(most, candidate.headroom_bytes);
  }
  std::sort(kept.begin(), kept.end(), [](const Candidate& a, const Candidate& b) { return a.point < b.point; });
  return kept;
}

OrderedJson SweepPage::front_section() const {
  // Points may differ in tokens per step: then their step times don't compare, the time for a token does.
  const bool per_step = most_tokens_ <= fewest_tokens_ * (1 + 1e-9);
  std::vector<ParetoPoint> points;
  for (const Candidate& c : lasting()) points.push_back({per_step ? c.step_time_s : c.token_s, c.headroom_bytes, words_of(grid_, c.point)});
  mark_front(points);
  return pareto_section(points, per_step ? "step time" : "time for a token of a GPU", candidates_seen_);
}

std::vector<Tile> SweepPage::tiles() const {
  const auto number = [](std::size_t n) { return count_text(static_cast<double>(n)); };
  std::vector<Tile> tiles = {{"points", number(points_), fmt::format("{} settings varied", grid_.axes().size())},
                             {"out of memory", number(out_of_memory_), number(refused_) + " refused"}};
  if (!fastest_) return tiles;
  const auto& [point, row] = *fastest_;
  tiles.push_back({"fastest, tokens/s/GPU", count_text(row.tokens_per_s_per_gpu), words_of(grid_, point)});
  tiles.push_back({"its step time", time_text(row.step_time_s), "bound by " + row.bound});
  if (row.has_mfu) tiles.push_back({"its MFU", percent_text(row.mfu), ""});
  if (row.has_headroom) tiles.push_back({"its headroom", bytes_text(row.headroom_bytes), ""});
  return tiles;
}

Page SweepPage::page() const {
  Page page{"sweep", scenario_, "", tiles(), {}, {}};
  for (const planner::Axis& axis : grid_.axes())
    page.headline += fmt::format("{}{} ({} values)", page.headline.empty() ? "" : " x ", axis.pointer, axis.values.size());
  if (grid_.size() <= kGridPoints) page.sections.push_back(grid_section());
  else page.notices.push_back(fmt::format("More than {} points: their grid is in sweep.csv only.", kGridPoints));
  if (candidates_seen_ > 1) page.sections.push_back(front_section());
  return page;
}

}  // namespace stepcast::cli
