// What a row says was measured. docs/validate.md. Test: tests/unit/validate_test.cpp.
#pragma once

#include "cli/validate/judge.hpp"

namespace stepcast::cli {

/// FLOPs per token that the row's source counts for its MFU.
double source_flops_per_token(const calibration::Run& run, const std::optional<calibration::MfuConvention>& convention, const scenarios::Scenario& scenario);

/// Tokens/s/GPU as stated; else from the step time; else from the MFU by the source's convention (`flops_per_token`, `peak_flops`).
Measured measured(const calibration::Run& run, const calibration::SourceFacts& facts, const scenarios::Scenario& scenario, double flops_per_token,
                  double peak_flops);

/// Whether the source says that the run did not fit.
bool ran_out_of_memory(const calibration::Run& run);

}  // namespace stepcast::cli
