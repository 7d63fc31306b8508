// Frees that wait for events: one queue per stream, polled from the front at every malloc, as PyTorch's process_events does.
// docs/caching_allocator.md, "Deferred frees"; test: tests/unit/caching_allocator_test.cpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/caching_allocator.hpp"

namespace stepcast::memory {

class DeferredFrees {
 public:
  explicit DeferredFrees(int streams) : queues_(static_cast<std::size_t>(streams)) {}

  void push(int stream, std::uint64_t event, BlockId block) {
    queues_[static_cast<std::size_t>(stream)].waiting.push_back({event, block});
    filled_ |= std::uint64_t{1} << stream;
  }

  /// Calls `on_done(block)` for each finished event. A queue stops at its first unfinished one.
  template <class OnDone>
  void poll(const EventSource& events, const OnDone& on_done) {
    for (std::uint64_t rest = filled_; rest != 0; rest &= rest - 1) {
      const int stream = std::countr_zero(rest);
      Queue& queue = queues_[static_cast<std::size_t>(stream)];
      while (!queue.empty() && events.done(stream, queue.front().event)) on_done(pop(queue));
      if (queue.empty()) filled_ &= ~(std::uint64_t{1} << stream);
    }
  }

  /// As if every outstanding event had finished.
  template <class OnDone>
  void drain(const OnDone& on_done) {
    for (Queue& queue : queues_) {
      while (!queue.empty()) on_done(pop(queue));
    }
    filled_ = 0;
  }

 private:
  struct Waiting {
    std::uint64_t event;
    BlockId block;
  };
  struct Queue {
    std::vector<Waiting> waiting;
    std::size_t head = 0;
    [[nodiscard]] bool empty() const { return head == waiting.size(); }
    [[nodiscard]] const Waiting& front() const { return waiting[head]; }
  };

  BlockId pop(Queue& queue) {
    const BlockId block = queue.front().block;
    ++queue.head;
    if (queue.empty() || queue.head >= kCompactFrom) compact(queue);
    return block;
  }

  /// Reuses the space before the head once that is cheap: nothing left to move, or at least as much space as there is to move.
  static void compact(Queue& queue) {
    if (queue.head * 2 < queue.waiting.size()) return;
    queue.waiting.erase(queue.waiting.begin(), queue.waiting.begin() + static_cast<std::ptrdiff_t>(queue.head));
    queue.head = 0;
  }

  static constexpr std::size_t kCompactFrom = 64;
  std::vector<Queue> queues_;
  std::uint64_t filled_ = 0;  // bit s: queue s is not empty
};

}  // namespace stepcast::memory
