// See plan.hpp.
#include "cli/sweep/plan.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/validate/parallel.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/ordered_json.hpp"
#include "hw_models/profiles.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {
namespace {

constexpr std::size_t kMaxProfileBytes = std::size_t{4} << 20;

/// FNV-1a (Fowler, Noll and Vo), 64 bits.
std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// A resolved scenario without what no forecast depends on.
OrderedJson stripped(const scenarios::Scenario& scenario) {
  OrderedJson json = scenarios::to_json(scenario);
  json.erase("name");
  json.erase("why");
  json["model"].erase("name");
  return json;
}

std::uint64_t key_of(const scenarios::Scenario& scenario, const OrderedJson& json) {
  std::string text = json.dump();
  for (const std::string& profile : {scenario.cluster.node, scenario.cluster.gpu}) {
    if (hw::is_profile_file(profile)) text += read_text_file(profile, kMaxProfileBytes);
  }
  return fnv1a(text);
}

/// What a program does not depend on is left out; that the rest is alike makes equal programs likely, and only that is asked of it.
std::uint64_t group_of(OrderedJson json, const scenarios::Scenario& scenario) {
  for (const char* section : {"allocator", "host", "run", "cluster", "fixed_costs"}) json.erase(section);
  return fnv1a(json.dump() + std::to_string(scenario.cluster.nodes) + "x" + std::to_string(scenario.cluster.gpus_per_node));
}

/// One point as it was read.
struct Read {
  std::uint64_t key = 0, group = 0;
  std::string refusal;
};

Read read_point(const scenarios::ScenarioTemplate& scenario, const planner::Grid& grid, std::size_t i) {
  try {
    const scenarios::Scenario resolved = scenario.with(grid.sets(i));
    const OrderedJson json = stripped(resolved);
    return {key_of(resolved, json), group_of(json, resolved), ""};
  } catch (const InputError& error) { return {0, 0, error.what()}; }
}

/// A value that no combination accepts is not a matter of combinations.
void refuse_hopeless_values(const planner::Grid& grid, const std::vector<Read>& points) {
  std::vector<std::vector<bool>> accepted;
  for (const planner::Axis& axis : grid.axes()) accepted.emplace_back(axis.values.size(), false);
  std::vector<std::vector<std::string>> why(accepted.size());
  for (std::size_t axis = 0; axis < why.size(); ++axis) why[axis].resize(accepted[axis].size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::vector<std::size_t> which = grid.indices(i);
    for (std::size_t axis = 0; axis < which.size(); ++axis) {
      if (points[i].refusal.empty()) accepted[axis][which[axis]] = true;
      else if (why[axis][which[axis]].empty()) why[axis][which[axis]] = points[i].refusal;
    }
  }
  for (std::size_t axis = 0; axis < why.size(); ++axis) {
    for (std::size_t value = 0; value < why[axis].size(); ++value) {
      if (accepted[axis][value]) continue;
      const planner::Axis& varied = grid.axes()[axis];
      throw InputError("--vary", varied.pointer, printable(varied.values[value]) + " is refused in every combination: " + why[axis][value]);
    }
  }
}

}  // namespace

std::uint64_t forecast_key(const scenarios::Scenario& scenario) { return key_of(scenario, stripped(scenario)); }

SweepPlan make_plan(const scenarios::ScenarioTemplate& scenario, const planner::Grid& grid, unsigned threads) {
  std::vector<Read> points(grid.size());
  for_each_index(points.size(), threads, [&](std::size_t i) { points[i] = read_point(scenario, grid, i); });
  refuse_hopeless_values(grid, points);
  SweepPlan plan;
  std::map<std::uint64_t, std::size_t> seen;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].refusal.empty() && seen.emplace(points[i].key, i).second) plan.uniques.push_back({points[i].key, i, points[i].group});
  }
  std::stable_sort(plan.uniques.begin(), plan.uniques.end(), [](const auto& a, const auto& b) { return a.group < b.group; });
  std::map<std::uint64_t, std::size_t> index;
  for (std::size_t u = 0; u < plan.uniques.size(); ++u) index.emplace(plan.uniques[u].key, u);
  for (Read& point : points) {
    plan.unique_of.push_back(point.refusal.empty() ? index.at(point.key) : SweepPlan::kRefused);
    plan.refusals.push_back(std::move(point.refusal));
  }
  return plan;
}

}  // namespace stepcast::cli
