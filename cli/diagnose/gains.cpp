// Which settings remove which cause; the best of several that fit into memory counts. Test: tests/model/inference_grid_test.cpp.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/diagnose/trace_scenario.hpp"
#include "cli/predict.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {

namespace {

using Sets = std::vector<std::string>;

struct Remedies {
  const char* finding;
  std::vector<Sets> changes;  // each by itself
};

/// Settings that have no effect on a scenario are refused when it is read, and so are not tried.
const std::vector<Remedies>& remedies() {
  static const std::vector<Remedies> kRemedies = {
      {"serialised_all_gathers",
       {{"/policy/backward_prefetch=BACKWARD_PRE"},
        {"/policy/backward_prefetch=BACKWARD_PRE", "/policy/forward_prefetch=true"},
        {"/policy/forward_prefetch_depth=1"}}},
      {"exposed_communication", {{"/policy/sharding=SHARD_GRAD_OP"}, {"/policy/sharding=HYBRID_SHARD"}, {"/policy/reshard_after_forward=false"}}},
      {"rate_limiter_wait", {{"/policy/limit_all_gathers=false"}}},
      {"launch_bound", {{"/kernels/set=pytorch-compile"}, {"/optimizer/implementation=fused"}}},
      {"unfused_attention", {{"/kernels/attention=flash2"}}},
      {"recomputation", {{"/recompute/mode=none"}, {"/recompute/mode=every_k", "/recompute/every=2"}}},
      {"small_message_collectives", {{"/policy/blocks_per_unit=2"}, {"/policy/blocks_per_unit=4"}}}};
  return kRemedies;
}

struct Outcome {
  Sets change;
  double step_s = 0;
};

/// Nothing where the change can't be made or its step doesn't run.
std::optional<double> step_time(const std::string& document, const Sets& change) {
  try {
    const Report report = predict(scenarios::read_scenario_text(document, "inferred scenario", change)).report;
    return report.outcome == "ok" ? std::optional(report.step_time_s) : std::nullopt;
  } catch (const InputError&) { return {}; }
}

std::optional<Outcome> best_of(const std::string& document, const std::vector<Sets>& changes) {
  std::optional<Outcome> best;
  for (const Sets& change : changes) {
    const auto time = step_time(document, change);
    if (time && (!best || *time < best->step_s)) best = Outcome{change, *time};
  }
  return best;
}

}  // namespace

void forecast_gains(const scenarios::Scenario& scenario, std::vector<trace::profile::Finding>& findings) {
  const std::string document = scenarios::to_json_text(scenario);
  const auto now = step_time(document, {});
  if (!now || *now <= 0) return;
  for (trace::profile::Finding& finding : findings) {
    const auto known = std::find_if(remedies().begin(), remedies().end(), [&](const Remedies& r) { return r.finding == finding.name; });
    if (known == remedies().end() || finding.forecast) continue;
    const auto best = best_of(document, known->changes);
    if (!best) continue;
    finding.forecast = 1 - best->step_s / *now;
    finding.change = best->change;
  }
}

}  // namespace stepcast::cli
