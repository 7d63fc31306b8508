// Largest part first. Test: tests/golden/diagnose_test.cpp.
#include "cli/report/diagnose/finer_causes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/report/table.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;

using Sums = std::vector<std::pair<std::string, profile::CauseSum>>;

/// Those of which something is left, largest first.
Sums sums_of(const profile::FinerCauses& causes) {
  Sums sums;
  for (const auto& [cause, sum] : causes.by_cause) {
    if (sum.total > profile::Time{}) sums.emplace_back(cause, sum);
  }
  std::stable_sort(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.second.total > b.second.total; });
  return sums;
}

}  // namespace

nlohmann::ordered_json json_of(const profile::FinerCauses& causes) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [cause, sum] : sums_of(causes)) json[cause] = {{"parts", sum.count}, {"total_us", profile::microseconds(sum.total)}};
  return json;
}

std::string text_of(const profile::FinerCauses& causes, const std::string& device) {
  const Sums sums = sums_of(causes);
  if (sums.empty()) return "";
  profile::Time all{};
  for (const auto& [cause, sum] : sums) all += sum.total;
  Table table({"waited for", "parts", "time", "share"}, {0, 4});
  for (const auto& [cause, sum] : sums) {
    const double share = static_cast<double>(sum.total.count()) / static_cast<double>(all.count());
    table.add(
        {cause, count_text(static_cast<double>(sum.count)), time_text(static_cast<double>(sum.total.count()) * 1e-9), percent_text(share), bar(share, 30)});
  }
  return fmt::format("\nWhat the ends of the gaps of device {} waited for\n", device) + table.render();
}

}  // namespace stepcast::cli
