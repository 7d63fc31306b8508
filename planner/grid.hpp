// What a sweep varies: axes of values for places of a scenario, and the grid of all their combinations. docs/sweep.md; test: tests/unit/grid_test.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::planner {

/// Points of a grid at most; a sweep of more wants a search (`stepcast tune`).
inline constexpr std::size_t kMaxPoints = 1'000'000;

/// `values` are texts as --set takes them: JSON, or else a text.
struct Axis {
  std::string pointer;
  std::vector<std::string> values;
  bool operator==(const Axis&) const = default;
};

/// "/batch/micro_batch=1,2,4", "/cluster/nodes=1..8:*2", "/cluster/nic_rate=100..400:100 Gb/s". Commas inside quotes and brackets do not separate.
/// Throws InputError.
Axis parse_axis(std::string_view text);
/// The values of a list or range as written behind the "=".
std::vector<std::string> parse_values(std::string_view text, const std::string& pointer);

/// All combinations, the last axis fastest.
class Grid {
 public:
  /// Throws InputError on an axis that is given twice, without values or with a value twice, and on more than kMaxPoints.
  explicit Grid(std::vector<Axis> axes);
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }
  /// Which value of each axis point `i` has.
  [[nodiscard]] std::vector<std::size_t> indices(std::size_t i) const;
  /// The point as --set texts.
  [[nodiscard]] std::vector<std::string> sets(std::size_t i) const;

 private:
  std::vector<Axis> axes_;
  std::size_t size_ = 1;
};

}  // namespace stepcast::planner
