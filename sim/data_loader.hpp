// PyTorch's DataLoader as a pipeline: `workers` processes prepare batches round robin, each at most `prefetch` batches ahead of the consumer.
//   start(i) = max(ready(i - workers), taken(i - workers * prefetch)),  ready(i) = start(i) + batch time;  workers = 0: prepared when asked for.
// Workers are out of phase by batch_time / workers, as they are on average after many batches: a loader that can't keep up then delivers evenly, at workers / batch_time.
// Test: tests/model/data_loader_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw_models/sim_time.hpp"
#include "sim/draws.hpp"

namespace stepcast::sim {

struct LoaderSettings {
  std::int32_t workers = 0;
  std::int32_t prefetch = 2;  // batches per worker
  SimTime batch_time{};       // to prepare one micro-batch, on average
  Spread spread;              // of the time of one batch
};

class DataLoader {
 public:
  /// `settings` must outlive the loader.
  explicit DataLoader(const LoaderSettings& settings, Draws draws = {})
      : settings_(settings),
        draws_(draws),
        ready_(static_cast<std::size_t>(std::max(settings.workers, 1))),
        taken_(ready_.size() * static_cast<std::size_t>(settings.prefetch)) {
    for (std::size_t worker = 0; worker < ready_.size(); ++worker) ready_[worker] = phase(worker);
  }

  /// The host asks for the next batch at time `now`; returns when it has it (>= now).
  SimTime next(SimTime now) {
    const SimTime work = scaled(settings_.batch_time, settings_.spread(draws_(count_)));
    const std::size_t worker = count_ % ready_.size(), slot = count_ % taken_.size();
    ++count_;
    if (settings_.workers == 0) return now + work;
    ready_[worker] = std::max(ready_[worker], taken_[slot]) + work;
    return taken_[slot] = std::max(now, ready_[worker]);
  }

  /// Takes away the stock of batches: the next ones are ready after `now`, one every batch_time / workers. A loader that is slower than the step has no stock in the long run;
  /// a faster one has it back soon.
  void drop_stock(SimTime now) {
    std::fill(taken_.begin(), taken_.end(), SimTime{});
    for (std::size_t next = 0; next < ready_.size(); ++next) ready_[(count_ + next) % ready_.size()] = now + phase(next + 1) - settings_.batch_time;
  }

 private:
  [[nodiscard]] SimTime phase(std::size_t worker) const {
    return settings_.batch_time * static_cast<std::int64_t>(worker) / static_cast<std::int64_t>(ready_.size());
  }

  const LoaderSettings& settings_;
  Draws draws_;
  std::vector<SimTime> ready_, taken_;  // by worker; by outstanding slot
  std::uint64_t count_ = 0;
};

}  // namespace stepcast::sim
