// Frees that wait for events: one queue per stream, polled from the front at every malloc, as PyTorch's process_events does.
// docs/caching_allocator.md, "Deferred frees"; test: tests/unit/caching_allocator_test.cpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/blocks.hpp"
#include "memory/caching_allocator.hpp"

namespace stepcast::memory {

class DeferredFrees {
 public:
  DeferredFrees(int streams, std::uint16_t lists)
      : queues_(static_cast<std::size_t>(streams)), lists_(lists), counts_(static_cast<std::size_t>(streams) * lists), waiting_(lists) {}

  /// A block of the free list `list` waits for an event of `stream`.
  void push(int stream, std::uint64_t event, BlockId block, std::uint16_t list) {
    queues_[static_cast<std::size_t>(stream)].waiting.push_back({event, block, list});
    ++counts_[static_cast<std::size_t>(stream) * lists_ + list];
    waiting_[list] |= bit(stream);
    filled_ |= bit(stream);
  }

  /// Streams that some block waits for, one bit each; of all lists, and of one.
  [[nodiscard]] std::uint64_t streams() const { return filled_; }
  [[nodiscard]] std::uint64_t streams(std::uint16_t list) const { return waiting_[list]; }

  /// Calls `on_done(block)` for each finished event. A queue stops at its first unfinished one.
  template <class OnDone>
  void poll(const EventSource& events, const OnDone& on_done) {
    for (std::uint64_t rest = filled_; rest != 0; rest &= rest - 1) {
      const int stream = std::countr_zero(rest);
      Queue& queue = queues_[static_cast<std::size_t>(stream)];
      while (!queue.empty() && events.done(stream, queue.front().event)) on_done(pop(queue, stream));
      if (queue.empty()) filled_ &= ~bit(stream);
    }
  }

  /// As if every outstanding event had finished.
  template <class OnDone>
  void drain(const OnDone& on_done) {
    for (std::size_t s = 0; s < queues_.size(); ++s) {
      while (!queues_[s].empty()) on_done(pop(queues_[s], static_cast<int>(s)));
    }
    filled_ = 0;
  }

 private:
  struct Waiting {
    std::uint64_t event;
    BlockId block;
    std::uint16_t list;
  };
  struct Queue {
    std::vector<Waiting> waiting;
    std::size_t head = 0;
    [[nodiscard]] bool empty() const { return head == waiting.size(); }
    [[nodiscard]] const Waiting& front() const { return waiting[head]; }
  };

  static std::uint64_t bit(int stream) { return std::uint64_t{1} << stream; }

  BlockId pop(Queue& queue, int stream) {
    const Waiting first = queue.front();
    ++queue.head;
    if (queue.empty() || queue.head >= kCompactFrom) compact(queue);
    if (--counts_[static_cast<std::size_t>(stream) * lists_ + first.list] == 0) waiting_[first.list] &= ~bit(stream);
    return first.block;
  }

  /// Reuses the space before the head once that is cheap: nothing left to move, or at least as much space as there is to move.
  static void compact(Queue& queue) {
    if (queue.head * 2 < queue.waiting.size()) return;
    queue.waiting.erase(queue.waiting.begin(), queue.waiting.begin() + static_cast<std::ptrdiff_t>(queue.head));
    queue.head = 0;
  }

  static constexpr std::size_t kCompactFrom = 64;
  std::vector<Queue> queues_;
  std::size_t lists_;
  std::vector<std::uint32_t> counts_;   // entries by stream and list
  std::vector<std::uint64_t> waiting_;  // by list: bit s: an entry of stream s
  std::uint64_t filled_ = 0;            // bit s: queue s is not empty
};

}  // namespace stepcast::memory
