// What each pass of a step computes, recomputation among them, and steps as the device ran them. docs/diagnose.md, "Passes"; test: tests/golden/diagnose_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trace/profile/metrics.hpp"

namespace stepcast::cli {

/// {pass: {kernels, compute_us}}.
nlohmann::ordered_json json_of(const trace::profile::PassTotals& passes);
/// {steps, step_us, and the times of one step}; null where no step is marked.
nlohmann::ordered_json json_of(const trace::profile::StepsOnDevice& steps);
/// Of all compute; nothing where no pass is known.
double recomputation_share(const trace::profile::PassTotals& passes);
std::string text_of(const trace::profile::PassTotals& passes);

}  // namespace stepcast::cli
