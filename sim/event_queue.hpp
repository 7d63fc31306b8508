// The event set: 16-byte records in a 4-ary heap, in total order (time, phase, sequence number). No allocation per event once warm.
// At one instant the device's events come before the host's: a completion is visible to a host that looks at that very time. Test: tests/unit/event_queue_test.cpp.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "hw_models/sim_time.hpp"

namespace stepcast::sim {

enum class EventKind : std::uint32_t { kernel_end, stream_arrival, collective_end, host };

struct Event {
  std::int64_t time = 0;
  std::uint32_t order = 0;  // phase bit and sequence number; also names the event, so that a re-timed one can be told from its stale copy
  std::uint32_t what = 0;   // kind in the top two bits, target index below

  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(what >> 30); }
  [[nodiscard]] std::uint32_t target() const { return what & 0x3fffffffu; }
  [[nodiscard]] bool before(const Event& other) const { return time != other.time ? time < other.time : order < other.order; }
};

class EventQueue {
 public:
  /// Adds an event and returns its order number. Throws std::length_error after 2^31 events.
  std::uint32_t push(SimTime time, EventKind kind, std::uint32_t target) {
    if (sequence_ == kHostPhase) throw std::length_error("more than 2^31 events in one simulation");
    const std::uint32_t order = (kind == EventKind::host ? kHostPhase : 0u) | sequence_++;
    heap_.push_back({time.count(), order, (static_cast<std::uint32_t>(kind) << 30) | target});
    sift_up(heap_.size() - 1);
    return order;
  }

  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
    return first;
  }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] const Event& top() const { return heap_.front(); }
  /// True if nothing is due at `time` or earlier.
  [[nodiscard]] bool idle_until(SimTime time) const { return heap_.empty() || heap_.front().time > time.count(); }

 private:
  static constexpr std::uint32_t kHostPhase = 1u << 31;

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
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = 4 * at + 1;
      if (first >= heap_.size()) break;
      std::size_t least = first;
      const std::size_t end = first + 4 < heap_.size() ? first + 4 : heap_.size();
      for (std::size_t child = first + 1; child < end; ++child)
        if (heap_[child].before(heap_[least])) least = child;
      if (!heap_[least].before(event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<Event> heap_;
  std::uint32_t sequence_ = 0;
};

}  // namespace stepcast::sim
