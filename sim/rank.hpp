// State of one simulated rank: its host thread, its streams, its place in each communicator's FIFO, its events, its memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw_models/sim_time.hpp"
#include "memory/caching_allocator.hpp"
#include "program/program.hpp"
#include "sim/data_loader.hpp"
#include "sim/simulate.hpp"
#include "sim/variation.hpp"
#include "trace/trace.hpp"

namespace stepcast::sim {

/// A growing ring buffer; a stream's queue.
template <class T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] T& front() { return ring_[head_ & (ring_.size() - 1)]; }
  [[nodiscard]] const T& front() const { return ring_[head_ & (ring_.size() - 1)]; }
  void pop() { ++head_; }
  /// Adds an item, which the caller fills in place: one that is written field by field and copied at once waits for its fields to leave the store buffer.
  T& push() {
    if (tail_ - head_ == ring_.size()) grow();
    return ring_[tail_++ & (ring_.size() - 1)] = T{};
  }

 private:
  void grow() {
    std::vector<T> larger(ring_.size() * 2);
    for (std::size_t i = head_; i != tail_; ++i) larger[i & (larger.size() - 1)] = ring_[i & (ring_.size() - 1)];
    ring_.swap(larger);
  }
  std::vector<T> ring_ = std::vector<T>(16);
  std::size_t head_ = 0, tail_ = 0;
};

inline constexpr std::uint32_t kNoTurn = ~std::uint32_t{0};

/// A call that the host has put on a stream.
struct Item {
  std::uint32_t op = 0;
  std::uint32_t capture = 0;      // wait: the record that is meant; collective: its number in the communicator's FIFO
  std::uint32_t correlation = 0;  // recorded ranks only
  std::uint32_t context = 0;      // recorded ranks only: step, phase and unit of the call
  std::uint32_t step = 0;
  std::uint32_t turn = kNoTurn;  // one hardware queue: its place among the rank's calls
  SimTime arrival{};             // not before this does it reach the device
};

struct Stream {
  enum class State : std::uint8_t { idle, awaiting_arrival, running, blocked_on_event, in_collective };
  State state = State::idle;
  bool reached = false;  // in_collective: this rank has arrived at it (it is first in its communicator's FIFO)
  std::uint32_t enqueued = 0, done = 0;
  std::uint32_t order = 0;                  // of the pending event; others of this stream are stale
  SimTime begin{}, updated{}, remaining{};  // of the running kernel; `remaining` at full speed
  double speed = 1;
  Fifo<Item> queue;
};

struct EventSlot {
  std::uint32_t recorded = 0, completed = 0;
};

struct Host {
  enum class State : std::uint8_t { running, scheduled, on_event, queue_full, draining, finished };
  State state = State::running;
  trace::HostState reason = trace::HostState::working;  // of the wait
  bool paid = false;                                    // the host time of the current op is spent, its effect is due
  bool drained = false;                                 // the device is idle, as the current op asked
  std::uint32_t waits_for = 0;                          // event slot or stream
  std::int32_t step = -1;                               // -1: setup
  std::uint32_t pc = 0, end = 0;
  SimTime time{}, wait_begin{};
};

/// Completion of stream positions for the allocator: an event recorded now is done when all that is on the stream now is done.
class StreamEvents final : public memory::EventSource {
 public:
  explicit StreamEvents(const std::array<Stream, program::kStreams>& streams) : streams_(streams) {}
  std::uint64_t record(int stream) override { return streams_[static_cast<std::size_t>(stream)].enqueued; }
  [[nodiscard]] bool done(int stream, std::uint64_t event) const override { return streams_[static_cast<std::size_t>(stream)].done >= event; }

 private:
  const std::array<Stream, program::kStreams>& streams_;
};

struct Memory {
  Memory(const memory::Settings& settings, std::int64_t bytes, std::array<Stream, program::kStreams>& streams, std::size_t buffers)
      : events(streams), allocator(settings, bytes, static_cast<int>(program::kStreams), events), blocks(buffers, memory::kNoBlock) {}
  StreamEvents events;
  memory::CachingAllocator allocator;
  std::vector<memory::BlockId> blocks;  // by buffer
};

using BytesByOwner = std::array<std::int64_t, program::kOwners>;

/// Whose memory a rank holds, and its peaks. Kept for the first rank.
struct MemoryAccount {
  void add(program::Owner owner, std::int64_t bytes) { by_owner[static_cast<std::size_t>(owner)] += bytes; }
  void look(const memory::Statistics& now) {
    peak_active = std::max(peak_active, now.active);
    peak_reserved = std::max(peak_reserved, now.reserved);
    if (now.allocated <= peak_allocated) return;
    peak_allocated = now.allocated;
    peak_by_owner = by_owner;
  }

  BytesByOwner by_owner{}, peak_by_owner{};
  std::int64_t peak_allocated = 0, peak_active = 0, peak_reserved = 0;
};

class Recorder;

struct Rank {
  Rank(const LoaderSettings& loader_settings, Draws batches, RankVariation own) : variation(own), loader(loader_settings, batches) {}
  std::uint32_t index = 0;
  const program::Program* program = nullptr;
  Recorder* recorder = nullptr;          // of the first few: what they do is recorded
  std::uint32_t dirty = 0;               // streams whose head may be able to move
  std::uint32_t active_collectives = 0;  // transferring now
  std::uint32_t running = 0;             // streams that run a kernel, one bit each
  std::uint32_t blocked = 0;             // streams blocked on an event
  std::uint32_t in_collective = 0;       // streams in a collective, or waiting for their turn in its communicator
  std::uint32_t turns = 0, turn = 0;     // one hardware queue: given out, and whose it is
  Host host;
  std::array<Stream, program::kStreams> streams;
  std::array<std::uint32_t, program::kCommunicators> issued{}, next{};  // collectives issued, and the next to run, per communicator
  std::vector<EventSlot> events;
  Waits waits;
  std::array<SimTime, program::kCommunicators> arrival{};  // at the collective that is to run
  RankVariation variation;
  DataLoader loader;
  std::unique_ptr<Memory> memory;  // absent without a memory model
};

}  // namespace stepcast::sim
