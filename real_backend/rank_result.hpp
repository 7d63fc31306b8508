// What a rank of a training job leaves behind. Test: tests/unit/train_test.cpp.
#pragma once

#include <atomic>
#include <vector>

#include "real_backend/failure.hpp"
#include "real_backend/memory.hpp"
#include "real_backend/parameters.hpp"
#include "trace/trace.hpp"

namespace stepcast::real {

/// The norm is NaN where the program clips nothing.
struct StepMetrics {
  double loss = 0, grad_norm = 0;
};

/// Steps are there up to `done`, whatever comes of the rest.
struct RankResult {
  std::vector<StepMetrics> steps;
  Counter done{0};
  std::atomic<bool> back{false};  // its threads have ended
  std::vector<Moments> parameters;
  MemoryPeaks memory;
  trace::Trace trace;
  std::atomic<bool> out_of_memory{false};
};

}  // namespace stepcast::real
