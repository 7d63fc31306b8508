// See failure.hpp.
#include "real_backend/failure.hpp"

#include <algorithm>

namespace stepcast::real {

void Failure::raise(const std::string& cause) {
  const std::lock_guard lock(mutex_);
  causes_.push_back(cause);
  wake();
}

void Failure::stop() {
  const std::lock_guard lock(mutex_);
  wake();
}

/// Needs the lock.
void Failure::wake() {
  raised_.store(true, std::memory_order_release);
  for (Counter* counter : watched_) advance(*counter);  // a waiter only looks again when the value has changed
}

std::vector<std::string> Failure::causes() const {
  const std::lock_guard lock(mutex_);
  return causes_;
}

void Failure::watch(Counter& counter) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(&counter);
}

void Failure::forget(Counter& counter) {
  const std::lock_guard lock(mutex_);
  std::erase(watched_, &counter);
}

}  // namespace stepcast::real
