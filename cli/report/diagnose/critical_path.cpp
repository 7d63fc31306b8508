// Largest part first. Test: tests/golden/diagnose_test.cpp.
#include "cli/report/diagnose/critical_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cli/report/diagnose/lines.hpp"
#include "cli/report/table.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::Time;

constexpr std::size_t kPartsInJson = 20, kPartsInText = 6;

using Kinds = std::vector<std::pair<std::string, Time>>;

/// Largest first, without those of which nothing is left.
Kinds ordered(const std::map<std::string, Time, std::less<>>& by_kind) {
  Kinds kinds;
  for (const auto& [kind, time] : by_kind) {
    if (time > Time{}) kinds.emplace_back(kind, time);
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return kinds;
}

/// The parts of all paths that are kernels, by name, longest first.
std::vector<profile::PathPart> kernels_of(const std::vector<profile::CriticalPath>& paths) {
  std::map<std::string, profile::PathPart> by_name;
  for (const profile::CriticalPath& path : paths) {
    for (const profile::PathPart& part : path.parts) {
      if (part.name.empty() || part.kind == "unexplained" || part.kind == "before_recording") continue;
      profile::PathPart& sum = by_name[part.name];
      sum.name = part.name;
      sum.count += part.count;
      sum.total += part.total;
    }
  }
  std::vector<profile::PathPart> parts;
  for (auto& [name, part] : by_name) parts.push_back(std::move(part));
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.total > b.total; });
  return parts;
}

}  // namespace

nlohmann::ordered_json json_of(const std::vector<profile::CriticalPath>& paths) {
  auto json = nlohmann::ordered_json::array();
  for (const profile::CriticalPath& path : paths) {
    auto kinds = nlohmann::ordered_json::object(), parts = nlohmann::ordered_json::array();
    for (const auto& [kind, time] : ordered(path.by_kind)) kinds[kind] = profile::microseconds(time);
    for (std::size_t i = 0; i < std::min(kPartsInJson, path.parts.size()); ++i) {
      const profile::PathPart& part = path.parts[i];
      parts.push_back({{"kind", part.kind}, {"name", part.name}, {"count", part.count}, {"total_us", profile::microseconds(part.total)}});
    }
    json.push_back({{"step", path.step}, {"length_us", profile::microseconds(path.time.end - path.time.begin)}, {"by_kind_us", kinds}, {"top", parts}});
  }
  return json;
}

std::string text_of(const std::vector<profile::CriticalPath>& paths, const std::string& device) {
  std::map<std::string, Time, std::less<>> by_kind;
  Time length{};
  for (const profile::CriticalPath& path : paths) {
    length += path.time.end - path.time.begin;
    for (const auto& [kind, time] : path.by_kind) by_kind[kind] += time;
  }
  if (length == Time{}) return "";
  Table kinds({"", "", "share"}, {0, 3});
  for (const auto& [kind, time] : ordered(by_kind))
    kinds.add({kind, time_of(time), percent_text(profile::ratio(time, length)), bar(profile::ratio(time, length), 30)});
  std::string text = fmt::format("\nCritical path of {} on device {}: {}\n",
                                 paths.size() == 1 ? "one step" : count_text(static_cast<double>(paths.size())) + " steps", device, time_of(length)) +
                     kinds.render();
  Table table({"time", "share", "count", "kernels on it"}, {3});
  const std::vector<profile::PathPart> kernels = kernels_of(paths);
  for (std::size_t i = 0; i < std::min(kPartsInText, kernels.size()); ++i)
    table.add({time_of(kernels[i].total), percent_text(profile::ratio(kernels[i].total, length)), count_text(static_cast<double>(kernels[i].count)),
               printable(kernels[i].name, kNameWidth)});
  return kernels.empty() ? text : text + table.render();
}

}  // namespace stepcast::cli
