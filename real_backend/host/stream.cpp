// See stream.hpp.
#include "real_backend/host/stream.hpp"

#include <exception>
#include <utility>

namespace stepcast::real::host {

Stream::Stream(Failure& failure, std::string who) : failure_(failure), who_(std::move(who)) {
  failure_.watch(pushed_);
  failure_.watch(done_);
  thread_ = std::thread([this] { run(); });
}

Stream::~Stream() {
  closing_.store(true, std::memory_order_release);
  advance(pushed_);
  thread_.join();
  failure_.forget(pushed_);
  failure_.forget(done_);
}

void Stream::push(Task task) {
  const std::uint32_t number = pushed();
  failure_.await(done_, [&](std::uint32_t done) { return number - done < kDepth; });
  ring_[number % kDepth] = std::move(task);
  advance(pushed_);
}

void Stream::drain() const {
  const std::uint32_t all = pushed();
  failure_.await(done_, [&](std::uint32_t done) { return done - all < kHalf; });
}

/// Closing comes behind all that is queued.
void Stream::run() {
  try {
    for (std::uint32_t number = 0;; ++number) {
      failure_.await(pushed_, [&](std::uint32_t pushed) { return pushed != number; });
      if (closing_.load(std::memory_order_acquire) && pushed() == number + 1) return;
      Task& task = ring_[number % kDepth];
      task();
      task = nullptr;
      advance(done_);
    }
  } catch (const Stopped&) {  // its cause is told elsewhere
  } catch (const std::exception& error) { failure_.raise(who_ + ": " + error.what()); }
}

}  // namespace stepcast::real::host
