// A report as text for people: what it costs, where the time and the memory go, what bounds the step, what was assumed. Test: tests/unit/report_test.cpp.
#pragma once

#include <string>

#include "cli/report/report.hpp"

namespace stepcast::cli {

std::string to_text(const Report& report);
/// One line: model, cluster, policy, batch, precision.
std::string headline(const ScenarioFacts& scenario);

}  // namespace stepcast::cli
