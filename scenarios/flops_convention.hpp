// What a scenario counts as model FLOPs, in the words of program/count.hpp. Test: tests/unit/report_test.cpp.
#pragma once

#include "program/count.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::scenarios {

inline program::FlopsConvention flops_convention(const Run& run) {
  switch (run.flops_convention) {
    case FlopsConvention::causal_attention: return program::FlopsConvention::causal_attention;
    case FlopsConvention::parameters_only: return program::FlopsConvention::six_p;
    case FlopsConvention::full_attention: break;
  }
  return program::FlopsConvention::full_attention;
}

}  // namespace stepcast::scenarios
