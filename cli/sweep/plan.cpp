// See plan.hpp.
#include "cli/sweep/plan.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

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
  static constexpr std::uint32_t kAccepted = static_cast<std::uint32_t>(-1);
  std::uint64_t key = 0, group = 0;
  std::uint32_t reason = kAccepted;  // of the refusals: why it can't be
};

/// Texts of refusals, each once; from several threads.
class Refusals {
 public:
  std::uint32_t number(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    return numbers_.emplace(text, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  [[nodiscard]] std::vector<std::string> texts() const {
    std::vector<std::string> texts(numbers_.size());
    for (const auto& [text, number] : numbers_) texts[number] = text;
    return texts;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint32_t> numbers_;
};

Read read_point(const scenarios::ScenarioTemplate& scenario, const planner::Grid& grid, std::size_t i, Refusals& refusals) {
  try {
    const scenarios::Scenario resolved = scenario.with(grid.sets(i));
    const OrderedJson json = stripped(resolved);
    return {key_of(resolved, json), group_of(json, resolved), Read::kAccepted};
  } catch (const InputError& error) { return {0, 0, refusals.number(error.what())}; }
}

/// A value that no combination accepts is not a matter of combinations.
void refuse_hopeless_values(const planner::Grid& grid, const std::vector<Read>& points, const std::vector<std::string>& reasons) {
  std::vector<std::vector<bool>> accepted;
  for (const planner::Axis& axis : grid.axes()) accepted.emplace_back(axis.values.size(), false);
  std::vector<std::vector<std::string>> why(accepted.size());
  for (std::size_t axis = 0; axis < why.size(); ++axis) why[axis].resize(accepted[axis].size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::vector<std::size_t> which = grid.indices(i);
    for (std::size_t axis = 0; axis < which.size(); ++axis) {
      if (points[i].reason == Read::kAccepted) accepted[axis][which[axis]] = true;
      else if (why[axis][which[axis]].empty()) why[axis][which[axis]] = reasons[points[i].reason];
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

bool read_alike(const Read& a, const Read& b) { return a.key == b.key && a.reason == b.reason; }

/// By point: the first like it.
std::vector<std::uint32_t> first_alike(const std::vector<Read>& points) {
  std::vector<std::uint32_t> order(points.size()), first(points.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return std::tie(points[a].reason, points[a].key, a) < std::tie(points[b].reason, points[b].key, b); });
  for (std::size_t i = 0; i < order.size(); ++i) first[order[i]] = i > 0 && read_alike(points[order[i]], points[order[i - 1]]) ? first[order[i - 1]] : order[i];
  return first;
}

}  // namespace

std::uint64_t forecast_key(const scenarios::Scenario& scenario) { return key_of(scenario, stripped(scenario)); }

SweepPlan make_plan(const scenarios::ScenarioTemplate& scenario, const planner::Grid& grid, unsigned threads) {
  std::vector<Read> points(grid.size());
  Refusals refusals;
  for_each_index(points.size(), threads, [&](std::size_t i) { points[i] = read_point(scenario, grid, i, refusals); });
  SweepPlan plan;
  plan.reasons_ = refusals.texts();
  refuse_hopeless_values(grid, points, plan.reasons_);
  const std::vector<std::uint32_t> first = first_alike(points);
  for (std::uint32_t i = 0; i < points.size(); ++i)
    if (points[i].reason == Read::kAccepted && first[i] == i) plan.uniques.push_back({points[i].key, i, points[i].group});
  std::stable_sort(plan.uniques.begin(), plan.uniques.end(), [](const auto& a, const auto& b) { return a.group < b.group; });
  std::vector<std::uint32_t> place(points.size());  // among the uniques, of the point that is the first of its kind
  for (std::uint32_t u = 0; u < plan.uniques.size(); ++u) place[plan.uniques[u].point] = u;
  for (std::size_t i = 0; i < points.size(); ++i)
    plan.places_.push_back(points[i].reason == Read::kAccepted ? place[first[i]] : SweepPlan::kRefused + points[i].reason);
  return plan;
}

}  // namespace stepcast::cli
