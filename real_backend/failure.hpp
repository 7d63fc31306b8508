// The end of a job whose rank failed: whoever fails says why, and everybody who waits for anything is woken and stops. Test: tests/unit/host_device_test.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace stepcast::real {

using Counter = std::atomic<std::uint32_t>;

/// Thrown in threads that stop because another one failed.
struct Stopped final : std::runtime_error {
  Stopped() : std::runtime_error("stopped: another part of the job failed") {}
};

class Failure {
 public:
  /// Notes the cause and wakes all who wait.
  void raise(const std::string& cause);
  /// Wakes all who wait; the cause is told elsewhere.
  void stop();
  [[nodiscard]] bool raised() const { return raised_.load(std::memory_order_acquire); }
  [[nodiscard]] std::vector<std::string> causes() const;

  /// Whoever waits on the counter is woken by a failure. The counter must live until `forget`.
  void watch(Counter& counter);
  void forget(Counter& counter);

  /// Returns when done(value) holds. Throws Stopped.
  template <class Done>
  void await(const Counter& counter, Done done) const {
    for (;;) {
      const std::uint32_t seen = counter.load(std::memory_order_acquire);
      if (raised()) throw Stopped();
      if (done(seen)) return;
      counter.wait(seen, std::memory_order_acquire);
    }
  }

 private:
  void wake();

  std::atomic<bool> raised_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> causes_;
  std::vector<Counter*> watched_;
};

/// Raises a counter and wakes those who wait on it.
inline void advance(Counter& counter, std::uint32_t by = 1) {
  counter.fetch_add(by, std::memory_order_acq_rel);
  counter.notify_all();
}

}  // namespace stepcast::real
