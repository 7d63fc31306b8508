// The policy of PyTorch's CUDA caching allocator over an abstract device memory: one code for simulation, the real device and replay of recorded histories.
// Rules: docs/caching_allocator.md; tests: tests/unit/caching_allocator_test.cpp, tests/model/allocator_traces_test.cpp, tests/property/lazy_polling_test.cpp. It decides and never waits: where PyTorch would synchronise, the caller drains the device and calls again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::memory {

struct Settings {
  std::optional<std::int64_t> max_split_size;  // bytes, above 20 MiB; absent = no limit
  std::int64_t roundup_power2_divisions = 0;   // a power of two; 0 or 1 = off
  std::optional<double> memory_fraction;       // of the device, above 0 and at most 1
  double garbage_collection_threshold = 0;     // 0 = off; acts only together with memory_fraction
  bool expandable_segments = false;
};

/// Throws InputError at /allocator/<key> for a value that PyTorch would refuse as well. The constructor of CachingAllocator calls it.
void validate(const Settings& settings, const std::string& file);

/// Running values and totals, all in bytes or counts, as torch.cuda.memory_stats() names them.
struct Statistics {
  std::int64_t allocated = 0, active = 0, reserved = 0, inactive_split = 0, requested = 0;
  std::int64_t segments = 0, device_mallocs = 0, device_frees = 0, retries = 0, ooms = 0;
  bool operator==(const Statistics&) const = default;
};

using BlockId = std::uint32_t;
inline constexpr BlockId kNoBlock = ~BlockId{0};

/// `pending`: freed, waiting for events. `unmapped`: address space of an expandable range without memory. `gone`: the id is not in use.
enum class BlockState : std::uint8_t { allocated, pending, free, unmapped, gone };

struct BlockInfo {
  BlockId block = kNoBlock;
  std::uint64_t address = 0;
  std::int64_t size = 0, requested = 0;  // bytes
  int stream = 0;
  bool small_pool = false;
  bool begins_segment = false;  // first block of a device allocation or expandable range
  BlockState state = BlockState::free;
};

/// What a request came to, and what the device was asked to do in this call, so that the caller can charge for it.
struct Outcome {
  enum class Kind : std::uint8_t { done, must_drain, out_of_memory };
  Kind kind = Kind::done;
  BlockId block = kNoBlock;
  std::int64_t bytes = 0;           // size of the block handed out
  std::int64_t segment_bytes = 0;   // the device allocation that was asked for (expandable: the bytes mapped, or that a fresh mapping needs); 0 on a cache hit
  std::int64_t released_bytes = 0;  // given back to the device in this call
  std::int32_t device_mallocs = 0, device_frees = 0;
};

/// Completion of the events that a free of a stream-shared block records.
class EventSource {
 public:
  virtual ~EventSource() = default;
  /// Records an event at the current tail of `stream`.
  virtual std::uint64_t record(int stream) = 0;
  [[nodiscard]] virtual bool done(int stream, std::uint64_t event) const = 0;
};

class CachingAllocator {
 public:
  /// `device_bytes`: memory that the pool may reserve, up to 1 PiB; `streams`: 1 to 64. `events` must outlive the allocator. Throws InputError.
  CachingAllocator(const Settings& settings, std::int64_t device_bytes, int streams, EventSource& events);
  ~CachingAllocator();
  CachingAllocator(CachingAllocator&&) noexcept;
  CachingAllocator& operator=(CachingAllocator&&) = delete;

  /// Polls deferred frees, then searches, releases or maps as PyTorch does. `must_drain`: wait until the device is idle, then call `malloc_after_drain` with
  /// the same arguments. Device frees reported here (garbage collection, oversize release) need no drain beyond the one inside cudaFree: charge them.
  /// A request of 0 bytes is done with kNoBlock. Throws std::invalid_argument for negative bytes or an unknown stream.
  Outcome malloc(std::int64_t bytes, int stream);
  /// Streams that this malloc would ask the event source about, one bit each: how far the others have come makes no difference to it. Throws as malloc.
  [[nodiscard]] std::uint64_t polls(std::int64_t bytes, int stream) const;
  /// From now on only requests that deferred frees could serve poll them. What is handed out stays the same; `active` and `inactive_split` lag behind.
  void poll_when_needed();
  /// The flush: takes every outstanding event as done, gives back all that is wholly free, counts a retry and asks the device once more.
  Outcome malloc_after_drain(std::int64_t bytes, int stream);
  /// At once, or deferred until the events recorded now are done. kNoBlock is ignored. Throws std::invalid_argument if the block is not handed out.
  void free(BlockId block);
  /// `block` is also used on `stream`; its own stream is ignored. Throws std::invalid_argument as above.
  void record_stream(BlockId block, int stream);
  /// torch.cuda.empty_cache(): takes every outstanding event as done and gives back all that is wholly free. Drain the device first.
  void empty_cache();

  [[nodiscard]] const Statistics& statistics() const { return *statistics_; }
  /// A number that is stable while the block lives and orders blocks like their addresses; for traces.
  [[nodiscard]] std::uint64_t address(BlockId block) const;
  /// Bytes of a block; 0 for kNoBlock.
  [[nodiscard]] std::int64_t size(BlockId block) const;
  /// Every block in address order, for memory maps, explanations of an out-of-memory and tests.
  [[nodiscard]] std::vector<BlockInfo> snapshot() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  const Statistics* statistics_;  // inside of the state; asked for at every call
};

}  // namespace stepcast::memory
