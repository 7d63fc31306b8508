// Vector clocks over the streams of a rank: which prefix of each stream's work is known to be complete. Used by check. Test: tests/unit/check_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "program/program.hpp"

namespace stepcast::program {

/// `done[s]` = number of device ops of stream s that are complete. The host is no lane of its own: it issues everything, so it only holds a clock.
struct VectorClock {
  std::array<std::uint32_t, kStreams> done{};

  void join(const VectorClock& other) {
    for (std::size_t s = 0; s < kStreams; ++s) done[s] = std::max(done[s], other.done[s]);
  }
};

/// The n-th device op (from 1) of a stream; n = 0 means none.
struct Epoch {
  std::uint8_t stream = 0;
  std::uint32_t n = 0;
};

inline bool ordered(const Epoch& before, const VectorClock& clock) { return before.n <= clock.done[before.stream]; }

}  // namespace stepcast::program
