// What `stepcast run` was asked beside its report, and what it answers. docs/questions.md; test: tests/golden/questions_cli_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/report/cost.hpp"
#include "cli/report/explain.hpp"
#include "cli/run/must_be_true.hpp"
#include "cli/run/roofline.hpp"
#include "cli/run/scaling.hpp"

namespace stepcast::cli {

struct Extras {
  std::optional<Explanation> explanation;
  std::optional<Cost> cost;
  std::optional<Roofline> roofline;
  std::vector<ScalingRow> scaling;
  std::optional<Answers> answers;
};

/// Sections below the report's; nothing where nothing was asked.
std::string to_text(const Extras& extras);
/// Fields beside the report's.
void add_to(nlohmann::ordered_json& report, const Extras& extras);

}  // namespace stepcast::cli
