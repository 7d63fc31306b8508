// Reader of recorded allocator traces: operations with the nine counters expected after each. Format: docs/caching_allocator.md, "Replay".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/replay.hpp"

namespace stepcast::test {

struct AllocTrace {
  std::string id;
  memory::Settings settings;
  std::int64_t device_bytes = 0;
  int streams = 0;
  std::vector<memory::ReplayOp> ops;
  std::vector<std::size_t> oom;
  std::vector<memory::Statistics> after;  // all but `requested`, which is not recorded
};

/// Empty if the file is absent.
std::vector<AllocTrace> read_alloc_traces(const std::string& path);

}  // namespace stepcast::test
