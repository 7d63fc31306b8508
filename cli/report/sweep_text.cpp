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

std::string counts_text(const std::vector<PointRow>& rows) {
  std::string text = fmt::format("{} points", count_text(static_cast<double>(rows.size())));
  for (const auto& [outcome, words] : {std::pair{"out_of_memory", "out of memory"}, {"deadlock", "in deadlock"}, {"refused", "refused"}}) {
    const auto n = std::count_if(rows.begin(), rows.end(), [&wanted = outcome](const PointRow& row) { return row.outcome == wanted; });
    if (n > 0) text += fmt::format(", {} {}", n, words);
  }
  return text;
}

std::string fastest_text(const planner::Grid& grid, std::size_t point, const PointRow& row) {
  std::string text = "fastest:";
  for (const std::string& set : grid.sets(point)) text += " " + set;
  return text + fmt::format(": {} tokens/s/GPU, bound by {}\n", count_text(row.tokens_per_s_per_gpu), row.bound);
}

}  // namespace

std::string sweep_text(const planner::Grid& grid, const std::vector<PointRow>& rows, std::size_t shown) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto faster = [&](std::size_t a, std::size_t b) { return rows[a].tokens_per_s_per_gpu > rows[b].tokens_per_s_per_gpu; };
  const std::size_t best = *std::min_element(order.begin(), order.end(), faster);
  const bool cut = order.size() > shown;
  if (cut) {
    std::stable_sort(order.begin(), order.end(), faster);
    order.resize(shown);
  }
  std::vector<std::string> header = axis_names(grid);
  std::vector<std::size_t> left(header.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  left.insert(left.end(), {header.size() + 4, header.size() + 5});
  header.insert(header.end(), {"step time", "tokens/s/GPU", "MFU", "headroom", "bound", ""});
  Table table(header, left);
  for (const std::size_t point : order) add_row(grid, point, rows[point], std::max(rows[best].tokens_per_s_per_gpu, 1e-300), table);
  std::string text = table.render() + counts_text(rows) + (cut ? fmt::format("; the {} fastest are shown", shown) : "") + "\n";
  return rows[best].outcome == "ok" ? text + fastest_text(grid, best, rows[best]) : text;
}

std::string sweep_csv(const planner::Grid& grid, const std::vector<PointRow>& rows) {
  std::string text;
  for (const planner::Axis& axis : grid.axes()) text += calibration::csv_cell(axis.pointer) + ",";
  text += "outcome,step_time_s,tokens_per_s_per_gpu,mfu,hfu,exposed_comm_s,peak_reserved_bytes,memory_headroom_bytes,missing_bytes,bound\n";
  for (std::size_t point = 0; point < rows.size(); ++point) {
    const PointRow& row = rows[point];
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
    text += row.bound + "\n";
  }
  return text;
}

}  // namespace stepcast::cli
