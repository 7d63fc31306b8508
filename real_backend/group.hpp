// Which ranks communicate with each other. Test: tests/unit/host_device_test.cpp.
#pragma once

#include <cstdint>

#include "program/program.hpp"

namespace stepcast::real {

/// Groups of one communicator are numbered by `color`, their ranks by `member`.
struct GroupPlace {
  std::int32_t color = 0, member = 0;
};

/// Of a rank, where `ranks` of them form groups of `size`. Shard groups are consecutive ranks; a replica group is made of those with the same place in their shard groups.
inline GroupPlace place_in_group(program::Communicator communicator, std::int32_t size, std::int32_t ranks, std::int32_t rank) {
  const std::int32_t stride = ranks / size;
  return communicator == program::Communicator::replica ? GroupPlace{rank % stride, rank / stride} : GroupPlace{rank / size, rank % size};
}

}  // namespace stepcast::real
