// The event set: 16-byte records in a 4-ary heap, in total order (time, phase, sequence number). No allocation per event once warm.
// At one instant the device's events come before the host's: a completion is visible to a host that looks at that very time. Test: tests/unit/event_queue_test.cpp.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "hw_models/sim_time.hpp"

namespace stepcast::sim {

enum class EventKind : std::uint32_t { kernel_end, stream_arrival, collective_end, host };

/// 16 bytes that compare as one number: time above, then the order, so that the heap needs no branch on ties.
class Event {
 public:
  Event() = default;
  Event(std::int64_t time, std::uint32_t order, EventKind kind, std::uint32_t target)
      : key_(static_cast<Key>(static_cast<std::uint64_t>(time)) << 64 | static_cast<Key>(order) << 32 | static_cast<std::uint32_t>(kind) << 30 | target) {}

  [[nodiscard]] std::int64_t time() const { return static_cast<std::int64_t>(key_ >> 64); }
  /// Phase bit and sequence number; also names the event, so that a re-timed one can be told from its stale copy.
  [[nodiscard]] std::uint32_t order() const { return static_cast<std::uint32_t>(key_ >> 32); }
  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(static_cast<std::uint32_t>(key_) >> 30); }
  [[nodiscard]] std::uint32_t target() const { return static_cast<std::uint32_t>(key_) & 0x3fffffffu; }
  [[nodiscard]] bool before(const Event& other) const { return key_ < other.key_; }

 private:
  __extension__ using Key = unsigned __int128;  // times are never negative
  Key key_ = 0;
};

class EventQueue {
 public:
  /// Adds an event and returns its order number. Throws std::length_error after 2^31 events.
  std::uint32_t push(SimTime time, EventKind kind, std::uint32_t target) {
    if (sequence_ == kHostPhase) throw std::length_error("more than 2^31 events in one simulation");
    const std::uint32_t order = (kind == EventKind::host ? kHostPhase : 0u) | sequence_++;
    const Event event(time.count(), order, kind, target);
    if (std::exchange(hole_, false)) {
      sift_down(event);
    } else {
      heap_.push_back(event);
      sift_up(heap_.size() - 1);
    }
    return order;
  }

  Event pop() {
    close();
    hole_ = true;
    return heap_.front();
  }

  [[nodiscard]] bool empty() const { return heap_.size() == static_cast<std::size_t>(hole_); }
  /// True if nothing is due at `time` or earlier.
  [[nodiscard]] bool idle_until(SimTime time) {
    close();
    return heap_.empty() || heap_.front().time() > time.count();
  }

 private:
  static constexpr std::uint32_t kHostPhase = 1u << 31;

  /// Fills the place of the event popped last. Most events bring forth another: push puts that there, which takes one way through the heap instead of two.
  void close() {
    if (!std::exchange(hole_, false)) return;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
  }

  void sift_up(std::size_t at) {
    const Event event = heap_[at];
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!event.before(heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = event;
  }

  void sift_down(const Event& event) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = 4 * at + 1;
      std::size_t least = first;
      if (first + 4 <= size) {  // two pairs, then the winners: comparisons that don't wait for each other
        const std::size_t left = first + static_cast<std::size_t>(heap_[first + 1].before(heap_[first]));
        const std::size_t right = first + 2 + static_cast<std::size_t>(heap_[first + 3].before(heap_[first + 2]));
        least = heap_[right].before(heap_[left]) ? right : left;
      } else {
        if (first >= size) break;
        for (std::size_t child = first + 1; child < size; ++child) least = heap_[child].before(heap_[least]) ? child : least;
      }
      if (!heap_[least].before(event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<Event> heap_;
  std::uint32_t sequence_ = 0;
  bool hole_ = false;  // the first place is free
};

}  // namespace stepcast::sim
