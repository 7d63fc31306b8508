// Enqueues one call on a lane: parts, their order and what they become are those of the host driver (host/kernels). Test: tests/unit/cuda_kernels_test.cpp.
#pragma once

#include <cstddef>
#include <span>

#include "program/compute.hpp"
#include "real_backend/call_parts.hpp"
#include "real_backend/cuda/lane.hpp"

namespace stepcast::real::cuda::kernels {

/// `parts`: where the call's parts begin in the device's memory, null for absent ones. Throws std::runtime_error.
void run(const program::Call& call, std::span<std::byte* const> parts, const Environment& environment, Lane& lane);

}  // namespace stepcast::real::cuda::kernels
