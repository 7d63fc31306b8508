// The pure function from a step's specification to the program of one rank. docs/design.md section 1; test: tests/unit/build_test.cpp.
#pragma once

#include "program/program.hpp"
#include "program/spec.hpp"

namespace stepcast::program {

/// `steps` training steps (at least 1). Steps that begin in the same state share their ops, so many steps cost no more memory than two or three.
/// Throws InputError for what the builder does not support, with the place in the scenario.
Program build_program(const StepSpec& spec, int steps);

}  // namespace stepcast::program
