// Inside of history_snapshot.cpp: a PyTorch memory snapshot's entries as typed values, with streams numbered. Test: tests/unit/snapshot_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stepcast::memory {

/// One entry of `device_traces`, as torch.cuda.memory._record_memory_history documents them.
struct SnapshotEntry {
  enum class Action : std::uint8_t { alloc, free_requested, free_completed, segment_alloc, segment_free, segment_map, segment_unmap, oom };
  Action action = Action::alloc;
  int stream = 0;             // numbered in the order of appearance
  std::uint64_t address = 0;  // oom: the device's free bytes
  std::int64_t size = 0;      // bytes as requested; of segments and pages, as reserved
  std::size_t place = 0;      // index in the file's list
};

/// A block that is handed out at the end, from `segments`.
struct SnapshotBlock {
  std::uint64_t address = 0;
  std::int64_t size = 0;
  int stream = 0;
};

struct SnapshotDevice {
  std::string pointer;  // "/device_traces/0"
  std::vector<SnapshotEntry> entries;
  std::map<std::string, std::int64_t> unknown_actions;  // with counts
  std::vector<std::int64_t> streams;                    // PyTorch's stream handles by number
  bool has_segments = false;
  std::int64_t reserved_at_end = 0;  // bytes, from `segments`
  std::vector<SnapshotBlock> live_at_end;
};

/// One for each list of `device_traces`, empty ones included. Throws InputError.
std::vector<SnapshotDevice> snapshot_devices(const nlohmann::json& document, const std::string& file);

}  // namespace stepcast::memory
