// How steps and ranks differ: quantiles, and who is waited for. docs/report.md, "Steps and ranks"; test: tests/unit/report_test.cpp.
#include <algorithm>
#include <cmath>

#include "cli/report/report.hpp"

namespace stepcast::cli {

Percentiles percentiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1), whole = std::floor(place);
    const auto low = static_cast<std::size_t>(whole);
    return values[low] + (place - whole) * (values[std::min(low + 1, values.size() - 1)] - values[low]);
  };
  return {at(0.1), at(0.5), at(0.9)};
}

std::int64_t straggler(const Report& report) {
  const auto& rows = report.rank_waits;
  const auto most = std::max_element(rows.begin(), rows.end(), [](const RankRow& a, const RankRow& b) { return a.last_share < b.last_share; });
  return most == rows.end() || most->last_share == 0 ? -1 : most - rows.begin();
}

}  // namespace stepcast::cli
