// From what a trace shows to a scenario. Each part reads the workload and the names in the file, and writes its keys with how sure they are.
// docs/diagnose.md, "From a trace to a scenario". Tests: tests/unit/inference_test.cpp; what was simulated comes back: tests/model/inference_grid_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "cli/diagnose/draft.hpp"
#include "scenarios/hf_config.hpp"
#include "trace/profile/diagnosis.hpp"
#include "trace/profile/workload.hpp"

namespace stepcast::cli {

struct TraceView {
  const trace::profile::RankDiagnosis& rank;
  const trace::profile::DeviceMetrics& device;
  const trace::profile::Workload& work;
  [[nodiscard]] bool mentions(std::string_view text) const { return trace::profile::mentions(rank.profile, text); }
};

/// Times that host and device went through forward and backward in a step; 0: no computation is known.
double micro_batches(const trace::profile::Workload& work);

void infer_model(const TraceView& trace, const std::optional<scenarios::ImportedModel>& given, ScenarioDraft& draft);  // with the batch
void infer_cluster(const TraceView& trace, ScenarioDraft& draft);
void infer_policy(const TraceView& trace, ScenarioDraft& draft);   // with precision; after model and cluster
void infer_kernels(const TraceView& trace, ScenarioDraft& draft);  // with recomputation and optimizer; after the model

void infer_loader(const TraceView& trace, ScenarioDraft& draft);
void infer_host(const TraceView& trace, ScenarioDraft& draft);  // what it costs is found by a simulation: add_host_cost

/// The device of a rank that computes most.
std::optional<ScenarioDraft> infer_scenario(const trace::profile::RankDiagnosis& rank, const std::optional<scenarios::ImportedModel>& given);

}  // namespace stepcast::cli
