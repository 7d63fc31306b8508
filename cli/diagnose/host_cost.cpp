// What the host costs, as a ratio of what the hardware profile has: one number, since a trace's own recording moves each of its parts differently. docs/diagnose.md.
// Tests: tests/model/inference_grid_test.cpp, tests/golden/diagnose_scenario_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/diagnose/trace_scenario.hpp"
#include "cli/predict.hpp"
#include "trace/profile/host_work.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;

constexpr const char* kScale = "/host/scale";
constexpr double kLargestScale = 1000;  // of the key

/// The host's own work in a step, or in a forward; 0: not recorded.
double host_work_ms(const profile::RankDiagnosis& rank, bool training) {
  std::vector<profile::Watched> stretches;
  if (training) {
    stretches = profile::steps_of_host(rank.profile);
  } else {
    for (const profile::ForwardRun& run : profile::forwards_of(rank.profile, busiest(rank)->device, profile::Passes(rank.profile)))
      stretches.push_back(run.host);
  }
  if (stretches.empty()) return 0;
  return profile::microseconds(profile::host_work(rank.profile, stretches)) / 1000 / static_cast<double>(stretches.size());
}

bool sets_scale(std::span<const std::string> sets) {
  return std::any_of(sets.begin(), sets.end(), [](const std::string& set) { return set.starts_with(std::string(kScale) + "="); });
}

}  // namespace

void infer_host(const TraceView& trace, ScenarioDraft& draft) {
  const bool recorded = !profile::steps_of_host(trace.rank.profile).empty();
  draft.guess(kScale, 1, recorded ? "as the hardware profile has it; with --scenario by a simulation" : "the file has no launches of a host");
}

void add_host_cost(const profile::RankDiagnosis& rank, std::span<const std::string> sets, TraceScenario& result) {
  if (sets_scale(sets) || !result.scenario || !busiest(rank)) return;
  const bool training = is_training(rank);
  const double traced = host_work_ms(rank, training);
  if (traced == 0) return;
  const Prediction prediction = predict(*result.scenario);
  if (prediction.report.outcome != "ok") return result.draft.guess(kScale, 1, "the scenario does not run: " + prediction.report.outcome);
  const double predicted = host_work_ms(as_traced(prediction), training);
  const double scale = predicted > 0 ? std::round(1000 * traced / predicted) / 1000 : 0;
  if (scale <= 0 || scale > kLargestScale) return;
  const std::string because = fmt::format("the host's own work in a {} takes {:.4g} ms, {:.4g} ms in the simulation; recording costs some of it",
                                          training ? "step" : "forward", traced, predicted);
  if (training) result.draft.seen(kScale, scale, because);
  else result.draft.guess(kScale, scale, because);
  read_draft(rank.profile.label, sets, result);
}

}  // namespace stepcast::cli
