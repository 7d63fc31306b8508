// PyTorch's DataLoader as a pipeline: `workers` processes prepare batches round robin, each at most `prefetch` batches ahead of the consumer.
//   start(i) = max(ready(i - workers), taken(i - workers * prefetch)),  ready(i) = start(i) + batch_time;  workers = 0: prepared when asked for.
// Test: tests/model/data_loader_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw_models/sim_time.hpp"

namespace stepcast::sim {

struct LoaderSettings {
  std::int32_t workers = 0;
  std::int32_t prefetch = 2;  // batches per worker
  SimTime batch_time{};       // to prepare one micro-batch
};

class DataLoader {
 public:
  explicit DataLoader(const LoaderSettings& settings)
      : settings_(settings),
        ready_(static_cast<std::size_t>(std::max(settings.workers, 1))),
        taken_(ready_.size() * static_cast<std::size_t>(settings.prefetch)) {}

  /// The host asks for the next batch at time `now`; returns when it has it (>= now).
  SimTime next(SimTime now) {
    if (settings_.workers == 0) return now + settings_.batch_time;
    const std::size_t worker = count_ % ready_.size(), slot = count_ % taken_.size();
    const SimTime start = std::max(ready_[worker], taken_[slot]);
    ready_[worker] = start + settings_.batch_time;
    ++count_;
    return taken_[slot] = std::max(now, ready_[worker]);
  }

 private:
  LoaderSettings settings_;
  std::vector<SimTime> ready_, taken_;  // by worker; by outstanding slot
  std::size_t count_ = 0;
};

}  // namespace stepcast::sim
