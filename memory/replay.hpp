// Replays a history of allocator operations under any settings: the counters after each operation, as torch.cuda.memory_stats() would give them.
// docs/caching_allocator.md, "Replay"; test: tests/model/allocator_traces_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "memory/caching_allocator.hpp"

namespace stepcast::memory {

struct ReplayOp {
  /// `complete`: the `count` oldest outstanding events of `stream` are done (fewer if there are fewer).
  /// `free_deferred`: freed, but in use until `free_completed` of the same id; one event on `stream` stands for whatever it waits for.
  /// `empty_cache`: torch.cuda.empty_cache().
  enum class Kind : std::uint8_t { malloc, free, record_stream, complete, free_deferred, free_completed, empty_cache };
  Kind kind = Kind::malloc;
  std::int64_t id = 0;    // names the allocation; may be used again after its free
  std::int64_t size = 0;  // bytes
  int stream = 0;
  std::int64_t count = 0;
};

struct Replay {
  std::vector<Statistics> after;  // one row per operation
  std::vector<std::size_t> oom;   // indices of the mallocs that failed; later operations on their ids have no effect
  Statistics peak;                // largest value that each counter had after an operation
};

/// The device is idle after every flush, so all events that were outstanding are done. Throws InputError at <pointer>/<index> of `file` for an operation on an
/// id that is not allocated, an id allocated twice, a negative size or count, an unknown stream; and for settings that `validate` refuses.
Replay replay(std::span<const ReplayOp> ops, const Settings& settings, std::int64_t device_bytes, int streams, const std::string& file,
              const std::string& pointer = "/ops");

}  // namespace stepcast::memory
