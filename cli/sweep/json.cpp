// See json.hpp.
#include "cli/sweep/json.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/sweep/points.hpp"

namespace stepcast::cli {
namespace {

nlohmann::ordered_json set_of(const planner::Grid& grid, std::size_t point) {
  nlohmann::ordered_json set = nlohmann::ordered_json::object();
  const std::vector<std::size_t> which = grid.indices(point);
  for (std::size_t axis = 0; axis < which.size(); ++axis) {
    const std::string& value = grid.axes()[axis].values[which[axis]];
    const auto parsed = nlohmann::ordered_json::parse(value, nullptr, false);
    set[grid.axes()[axis].pointer] = parsed.is_discarded() ? nlohmann::ordered_json(value) : parsed;
  }
  return set;
}

}  // namespace

std::string kept_json(const SweepPlan& plan, const SweepStore& store, std::size_t point) {
  const SweepPlan::Unique* unique = plan.unique_of(point);
  return unique ? store.get(unique->key) : refused_point(plan.refusal(point)).dump();
}

std::string point_json(const planner::Grid& grid, const SweepPlan& plan, const SweepStore& store, std::size_t point) {
  return "{\"set\":" + set_of(grid, point).dump() + "," + kept_json(plan, store, point).substr(1);  // what is kept begins with a brace of its own
}

}  // namespace stepcast::cli
