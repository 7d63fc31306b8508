// See sweep_text.hpp.
#include "cli/report/sweep_text.hpp"
#include "calibration/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/report/table.hpp"

namespace stepcast::cli {
namespace {

constexpr std::size_t kBarWidth = 24, kReasonWidth = 90;

std::string last_part(const std::string& pointer) { return pointer.substr(pointer.find_last_of('/') + 1); }

/// The last part of each pointer, or all of it where two end alike.
std::vector<std::string> axis_names(const planner::Grid& grid) {
  std::vector<std::string> names;
  for (const planner::Axis& axis : grid.axes()) {
    const auto alike = std::count_if(grid.axes().begin(), grid.axes().end(), [&](const auto& a) { return last_part(a.pointer) == last_part(axis.pointer); });
    names.push_back(alike == 1 ? last_part(axis.pointer) : axis.pointer);
  }
  return names;
}

std::string unquoted(const std::string& value) {
  return value.size() > 1 && value.front() == '"' && value.back() == '"' ? value.substr(1, value.size() - 2) : value;
}

std::vector<std::string> values_of(const planner::Grid& grid, std::size_t point) {
  std::vector<std::string> cells;
  const std::vector<std::size_t> which = grid.indices(point);
  for (std::size_t axis = 0; axis < which.size(); ++axis) cells.push_back(unquoted(grid.axes()[axis].values[which[axis]]));
  return cells;
}

std::string what_happened(const PointRow& row) {
  if (row.outcome == "out_of_memory") return "out of memory: " + size_text(static_cast<double>(row.missing_bytes)) + " missing";
  if (row.outcome != "refused") return row.outcome;
  return "refused: " + (row.refusal.size() > kReasonWidth ? row.refusal.substr(0, kReasonWidth) + "..." : row.refusal);
}

void add_row(const planner::Grid& grid, std::size_t point, const PointRow& row, double best, Table& table) {
  std::vector<std::string> cells = values_of(grid, point);
  if (row.outcome == "ok") {
    cells.insert(cells.end(),
                 {time_text(row.step_time_s), count_text(row.tokens_per_s_per_gpu), row.has_mfu ? percent_text(row.mfu) : "-",
                  row.has_headroom ? size_text(static_cast<double>(row.headroom_bytes)) : "-", row.bound, bar(row.tokens_per_s_per_gpu / best, kBarWidth)});
  } else {
    cells.insert(cells.end(), {"-", "-", "-", "-", what_happened(row)});
  }
  table.add(std::move(cells));
}

std::string fastest_text(const planner::Grid& grid, std::size_t point, const PointRow& row) {
  std::string text = "fastest:";
  for (const std::string& set : grid.sets(point)) text += " " + set;
  return text + fmt::format(": {} tokens/s/GPU, bound by {}\n", count_text(row.tokens_per_s_per_gpu), row.bound);
}

}  // namespace

void SweepTable::add(std::size_t point, const PointRow& row) {
  ++points_;
  ++outcomes_[row.outcome];
  if (!best_ || row.tokens_per_s_per_gpu > best_->row.tokens_per_s_per_gpu) best_ = {point, row};
  entries_.push_back({point, row});
  if (entries_.size() > 2 * shown_) entries_ = fastest();
}

std::vector<SweepTable::Entry> SweepTable::fastest() const {
  std::vector<Entry> entries = entries_;
  // What is kept from before stands in front, and of equally fast points the first of the grid stays first.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.row.tokens_per_s_per_gpu > b.row.tokens_per_s_per_gpu; });
  entries.resize(std::min(entries.size(), shown_));
  return entries;
}

std::size_t SweepTable::count(const std::string& outcome) const {
  const auto found = outcomes_.find(outcome);
  return found == outcomes_.end() ? 0 : found->second;
}

std::string SweepTable::text() const {
  const bool cut = points_ > shown_;
  std::vector<std::string> header = axis_names(grid_);
  std::vector<std::size_t> left(header.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  left.insert(left.end(), {header.size() + 4, header.size() + 5});
  header.insert(header.end(), {"step time", "tokens/s/GPU", "MFU", "headroom", "bound", ""});
  Table table(header, left);
  for (const Entry& entry : cut ? fastest() : entries_) add_row(grid_, entry.point, entry.row, std::max(best_->row.tokens_per_s_per_gpu, 1e-300), table);
  std::string text = table.render() + fmt::format("{} points", count_text(static_cast<double>(points_)));
  for (const auto& [outcome, words] : {std::pair{"out_of_memory", "out of memory"}, {"deadlock", "in deadlock"}, {"refused", "refused"}})
    if (count(outcome) > 0) text += fmt::format(", {} {}", count(outcome), words);
  text += (cut ? fmt::format("; the {} fastest are shown", shown_) : "") + "\n";
  return best_ && best_->row.outcome == "ok" ? text + fastest_text(grid_, best_->point, best_->row) : text;
}

std::string sweep_csv_header(const planner::Grid& grid) {
  std::string text;
  for (const planner::Axis& axis : grid.axes()) text += calibration::csv_cell(axis.pointer) + ",";
  return text + "outcome,step_time_s,tokens_per_s_per_gpu,mfu,hfu,exposed_comm_s,peak_reserved_bytes,memory_headroom_bytes,missing_bytes,bound\n";
}

std::string sweep_csv_line(const planner::Grid& grid, std::size_t point, const PointRow& row) {
  std::string text;
  for (const std::string& value : values_of(grid, point)) text += calibration::csv_cell(value) + ",";
  text += row.outcome + ",";
  const auto figure = [&](bool known, const auto& value) { text += known ? fmt::format("{},", value) : ","; };
  const bool ok = row.outcome == "ok";
  figure(ok, row.step_time_s);
  figure(ok, row.tokens_per_s_per_gpu);
  figure(ok && row.has_mfu, row.mfu);
  figure(ok && row.has_mfu, row.hfu);
  figure(ok, row.exposed_comm_s);
  figure(ok, row.peak_reserved_bytes);
  figure(row.has_headroom, row.headroom_bytes);
  figure(row.outcome == "out_of_memory", row.missing_bytes);
  return text + row.bound + "\n";
}

}  // namespace stepcast::cli
