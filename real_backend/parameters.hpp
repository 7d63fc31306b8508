// The parameters of a program in a rank's memory: first values, and what they have become. Test: tests/unit/train_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.hpp"
#include "real_backend/memory.hpp"
#include "real_backend/training.hpp"

namespace stepcast::real {

/// Fills the rank's part of the master copies, the padding with zeros, and the metrics with zeros.
void initialise(const program::Program& program, const DeviceMemory& memory, Device& device, const Training& training, std::int32_t rank);

/// Of one parameter's elements on a rank.
struct Moments {
  double sum = 0, squares = 0;
};
/// By parameter, in the program's order; nothing on ranks outside of the first shard group, which hold copies.
std::vector<Moments> moments(const program::Program& program, const DeviceMemory& memory, Device& device, std::int32_t rank);

}  // namespace stepcast::real
