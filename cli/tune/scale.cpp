// See scale.hpp.
#include "cli/tune/scale.hpp"

#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

/// A global batch that does not divide among the GPUs, or a group that does not fit, concerns this number of nodes alone.
ScaleRow best_on(const scenarios::ScenarioTemplate& scenario, const TuneSettings& settings) {
  const scenarios::Scenario base = scenario.with({});
  ScaleRow row{base.cluster.nodes, scenarios::ranks(base), "", {}};
  try {
    row.point = fastest(scenario, settings);
  } catch (const InputError& error) { row.refusal = error.what(); }
  return row;
}

}  // namespace

std::vector<ScaleRow> best_by_nodes(const OnNodes& scenario, const std::vector<std::int64_t>& nodes, const TuneSettings& settings) {
  std::vector<ScaleRow> rows;
  for (const std::int64_t count : nodes) rows.push_back(best_on(scenario(count), settings));
  return rows;
}

}  // namespace stepcast::cli
