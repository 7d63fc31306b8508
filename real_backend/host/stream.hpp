// A stream of the host driver: a thread that does what is queued, in order. One thread, the rank's host, puts things in. Test: tests/unit/host_device_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "real_backend/failure.hpp"

namespace stepcast::real::host {

/// An event: how often it has been recorded, by the host's order, and the last recording that is done.
struct Event {
  std::uint32_t recorded = 0;
  Counter completed{0};
};

class Stream {
 public:
  using Task = std::function<void()>;

  /// What a task throws fails the job, with `who` before it.
  Stream(Failure& failure, std::string who);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Blocks while the queue is full. Throws Stopped.
  void push(Task task);
  [[nodiscard]] std::uint32_t pushed() const { return pushed_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool reached(std::uint32_t position) const { return done_.load(std::memory_order_acquire) - position < kHalf; }
  void drain() const;

 private:
  static constexpr std::uint32_t kDepth = 1024, kHalf = std::uint32_t{1} << 31;
  void run();

  Failure& failure_;
  std::string who_;
  std::vector<Task> ring_{kDepth};
  Counter pushed_{0}, done_{0};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace stepcast::real::host
