// What is measured: how its devices are made, and how their work is timed. docs/real_backend.md, "Measuring"; test: tests/unit/host_bench_test.cpp, tests/unit/cuda_bench_test.cpp.
#pragma once

#include <cstdint>

#include "real_backend/driver.hpp"

namespace stepcast::real::bench {

struct Target {
  MakeDriver make_driver;
  /// The device times each piece of work by itself, as GPUs do. Otherwise a full stream is timed from outside, launch and all: there the host's share of a launch is the stream's.
  bool own_clock = false;
  std::int64_t outgrows = std::int64_t{8} << 20;  // bytes: more than any cache that a kernel would find its operands in, had they been used just before
  std::int64_t head_start = 0;                    // bytes: of what a stream is kept busy with while its host enqueues; with a clock of its own
};

/// The processors of this machine: more than their second-level caches.
Target host_target();

}  // namespace stepcast::real::bench
