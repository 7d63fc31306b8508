// Devices for measurements, each with a thread that is its host, and memory for what runs on them. Test: tests/unit/host_bench_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "real_backend/bench/target.hpp"
#include "real_backend/host/stream.hpp"

namespace stepcast::real::bench {

/// Memory of a device, handed out once.
class Pool {
 public:
  Pool(Device& device, std::int64_t bytes);
  std::byte* take(std::int64_t bytes);
  [[nodiscard]] Device& device() const { return device_; }
  /// What `take` uses up for so many.
  static std::int64_t rounded(std::int64_t bytes);

 private:
  Device& device_;
  std::byte* next_ = nullptr;
};

/// Memory for all buffers of a call, filled with a small number in every type, so that pages are there and no kernel meets a special value; ids differ from row to row.
class Buffers {
 public:
  Buffers(const program::Call& call, Pool& pool);
  [[nodiscard]] const std::vector<std::byte*>& parts() const { return parts_; }
  static std::int64_t bytes(const program::Call& call);

 private:
  std::vector<std::byte*> parts_;
};

/// As many copies of a call's buffers as outgrow the caches: they take turns.
class Operands {
 public:
  Operands(const program::Call& call, std::int64_t outgrows, Pool& pool);
  [[nodiscard]] const std::vector<std::byte*>& parts(std::size_t turn) const { return copies_[turn % copies_.size()].parts(); }
  static std::int64_t bytes(const program::Call& call, std::int64_t outgrows);

 private:
  std::vector<Buffers> copies_;
};

/// Ranks of one job.
class Ranks {
 public:
  /// With so many events, these collectives, and so much memory of each device.
  Ranks(const Target& target, std::int32_t count, std::size_t events, std::vector<program::CollectiveEntry> collectives, std::int64_t bytes);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] std::size_t size() const { return ranks_.size(); }
  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] const program::CollectiveEntry& collective() const { return program_.collectives.front(); }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  /// Calls f(rank, pool of its device) on all hosts at the same time, and waits. Throws std::runtime_error with the cause if one has failed.
  void on_all(const std::function<void(std::size_t rank, Pool& pool)>& f);

 private:
  struct Rank {
    std::unique_ptr<Device> device;
    std::unique_ptr<Pool> pool;
    std::unique_ptr<host::Stream> host;  // last: its thread uses the others
  };
  Target target_;
  program::Program program_;
  Training training_;
  Failure failure_;
  Counter progress_{0};
  Clock clock_;
  std::unique_ptr<Driver> driver_;
  std::deque<Rank> ranks_;
};

void launch(Device& device, const program::Call& call, const std::vector<std::byte*>& parts);

}  // namespace stepcast::real::bench
