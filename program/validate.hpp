// Refuses what no program can be built for: sizes that contradict each other, settings that are not supported yet. Test: tests/unit/build_test.cpp.
#pragma once

#include "program/spec.hpp"

namespace stepcast::program {

/// Throws InputError naming the scenario key (JSON pointer) of the first fault.
void validate(const StepSpec& spec, int steps);

}  // namespace stepcast::program
