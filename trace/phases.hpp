// Cuts a step's window into the phases of training. Private to trace/. Rule: docs/breakdown.md section 2. Test: tests/unit/breakdown_test.cpp.
#pragma once

#include <array>

#include "trace/intervals.hpp"
#include "trace/step_view.hpp"

namespace stepcast::trace {

/// By Phase; the parts are disjoint and together make the window.
std::array<Intervals, 4> cut_phases(const StepView& view);

}  // namespace stepcast::trace
