// Replay of a history: rows, failed allocations, refused input. Rules: docs/caching_allocator.md, "Replay".
#include "memory/replay.hpp"

#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "memory/sizes.hpp"

using namespace stepcast::memory;
using Op = ReplayOp;

namespace {

Op allocate(std::int64_t id, std::int64_t size, int stream = 0) { return {.kind = Op::Kind::malloc, .id = id, .size = size, .stream = stream}; }
Op release(std::int64_t id) { return {.kind = Op::Kind::free, .id = id}; }
Op use(std::int64_t id, int stream) { return {.kind = Op::Kind::record_stream, .id = id, .stream = stream}; }
Op complete(int stream, std::int64_t count) { return {.kind = Op::Kind::complete, .stream = stream, .count = count}; }

Replay run(const std::vector<Op>& ops, const Settings& settings = {}) { return replay(ops, settings, 100 * kMiB, 2, "history.json"); }

}  // namespace

TEST_CASE("one row after each operation, and the peaks") {
  const Replay done = run({allocate(7, 3 * kMiB), allocate(8, 60 * kMiB, 1), use(8, 0), release(8), complete(0, 5), allocate(7000, 512), release(7)});
  REQUIRE(done.after.size() == 7);
  CHECK(done.after[0].inactive_split == 17 * kMiB);
  CHECK(done.after[3].allocated == 3 * kMiB);
  CHECK(done.after[3].active == 63 * kMiB);
  CHECK(done.after[4].active == 63 * kMiB);  // complete acts at the next malloc
  CHECK(done.after[5].active == 3 * kMiB + 512);
  CHECK(done.after[6].allocated == 512);
  CHECK(done.peak.allocated == 63 * kMiB);
  CHECK(done.peak.reserved == 82 * kMiB);
  CHECK(done.oom.empty());
}

TEST_CASE("a flush finishes the outstanding events, so that a later complete counts new ones only") {
  const Replay done =
      run({allocate(1, 60 * kMiB, 1), use(1, 0), release(1), allocate(2, 60 * kMiB, 0), use(2, 1), release(2), complete(1, 1), allocate(3, 60 * kMiB, 0)});
  CHECK(done.after[3].retries == 1);
  CHECK(done.after[7].device_mallocs == 2);  // block 2 was free again: a cache hit
  CHECK(done.after[7].retries == 1);
}

TEST_CASE("operations on an allocation that failed have no effect; its id is free afterwards") {
  const Replay done = run({allocate(1, 200 * kMiB), use(1, 1), release(1), allocate(1, kMiB)});
  CHECK(done.oom == std::vector<std::size_t>{0});
  CHECK(done.after[2].ooms == 1);
  CHECK(done.after[3].allocated == kMiB);
}

TEST_CASE("the same history under other settings: coarser rounding, more reuse") {
  Settings settings;
  settings.roundup_power2_divisions = 4;
  const std::vector<Op> ops{allocate(1, 33 * kMiB), release(1), allocate(2, 39 * kMiB)};
  CHECK(run(ops).after[2].reserved == 74 * kMiB);            // segments of 34 and 40 MiB
  CHECK(run(ops, settings).after[2].reserved == 40 * kMiB);  // both round to 40 MiB: 32 to 64 MiB in steps of 8
}

TEST_CASE("bad histories are refused with their place") {
  const auto refused = [](const std::vector<Op>& ops, const char* message) { CHECK_THROWS_WITH_AS(run(ops), message, stepcast::InputError); };
  refused({release(4)}, "history.json: /ops/0: id 4 is not allocated");
  refused({allocate(4, 512), release(4), release(4)}, "history.json: /ops/2: id 4 is not allocated");
  refused({allocate(4, 512), allocate(4, 512)}, "history.json: /ops/1: id 4 is already allocated");
  refused({allocate(4, -1)}, "history.json: /ops/0: negative size or count");
  refused({complete(0, -1)}, "history.json: /ops/0: negative size or count");
  refused({allocate(4, 512, 2)}, "history.json: /ops/0: unknown stream 2");
  refused({complete(-1, 1)}, "history.json: /ops/0: unknown stream -1");
  refused({allocate(4, 512), use(4, 9)}, "history.json: /ops/1: unknown stream 9");
  refused({use(4, 0)}, "history.json: /ops/0: id 4 is not allocated");
  CHECK_THROWS_AS(replay({}, {}, 100, 0, "history.json"), stepcast::InputError);
  CHECK_THROWS_AS(replay({}, {}, 100, -5, "history.json"), stepcast::InputError);
}
