// Replays recorded allocator traces: every operation must give the recorded counters exactly. Rules: docs/caching_allocator.md.
// STEPCAST_ALLOC_TRACES names another file of the same format.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "support/alloc_traces.hpp"
#include "support/paths.hpp"

using namespace stepcast;

namespace {

std::string traces_path() {
  const char* other = std::getenv("STEPCAST_ALLOC_TRACES");
  return other != nullptr ? other : test::source_dir() + "/../shared/reference/alloc_traces.json";
}

std::string show(const memory::Statistics& s) {
  std::string text;
  for (const std::int64_t value : {s.allocated, s.active, s.reserved, s.inactive_split, s.segments, s.device_mallocs, s.device_frees, s.retries, s.ooms}) {
    text += std::to_string(value) + " ";
  }
  return text;
}

/// Index of the first operation whose counters differ, or the number of operations.
std::size_t first_difference(const test::AllocTrace& trace, const memory::Replay& replayed) {
  for (std::size_t i = 0; i < trace.after.size(); ++i) {
    memory::Statistics got = replayed.after.at(i);
    got.requested = 0;
    if (got != trace.after[i]) return i;
  }
  return trace.after.size();
}

}  // namespace

TEST_CASE("recorded allocator traces give the recorded counters after every operation") {
  const std::vector<test::AllocTrace> traces = test::read_alloc_traces(traces_path());
  if (traces.empty()) {
    MESSAGE("skipped: no traces at " << traces_path());
    return;
  }
  std::size_t operations = 0;
  for (const test::AllocTrace& trace : traces) {
    const memory::Replay replayed = memory::replay(trace.ops, trace.settings, trace.device_bytes, trace.streams, trace.id);
    REQUIRE(trace.after.size() == trace.ops.size());
    const std::size_t i = first_difference(trace, replayed);
    if (i < trace.after.size()) { FAIL_CHECK(trace.id << ", operation " << i << ": expected " << show(trace.after[i]) << "got " << show(replayed.after[i])); }
    CHECK(replayed.oom == trace.oom);
    operations += trace.ops.size();
  }
  MESSAGE(traces.size() << " traces, " << operations << " operations");
}
