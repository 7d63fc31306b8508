// Datasheet rates of a GPU by operand type. docs/models.md, "Counts and peaks". Test: tests/model/cost_model_test.cpp.
#pragma once

#include "hw_models/hardware.hpp"
#include "hw_models/kernel.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

/// Whether the GPU has matrix units for operands of `dtype`.
bool has_peak(const Profile& gpu, Dtype dtype);

/// Dense peak of matrix products on operands of `dtype`. Throws InputError where the GPU has no such units (fp8 before Ada and Hopper, bf16 before Ampere).
FlopsPerSecond peak_rate(const Profile& gpu, Dtype dtype);

}  // namespace stepcast::hw
