// A judgement in text, JSON and CSV. Fields: docs/validate.md. Test: tests/unit/validate_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/validate/hold_out.hpp"
#include "cli/validate/judge.hpp"
#include "cli/validate/recalibrate.hpp"

namespace stepcast::cli {

/// Errors by source, tier and GPU, outcomes, the worst rows, and the rows without a forecast by reason.
std::string to_text(const Judgement& judgement);
nlohmann::ordered_json to_json(const Judgement& judgement);
/// By source: errors as shipped and after the fit, and the factors that the rows determine.
std::string to_text(const Recalibration& recalibration);
nlohmann::ordered_json to_json(const Recalibration& recalibration);
/// By fold: errors of the rows held out, as shipped and with the factors fitted to the others.
std::string to_text(const HoldOut& held_out);
nlohmann::ordered_json to_json(const HoldOut& held_out);
nlohmann::ordered_json summary_json(const calibration::ErrorSummary& summary);
/// One line a row.
std::string to_csv(const Judgement& judgement);

}  // namespace stepcast::cli
