// The tries of malloc, deferred frees, flush, max_split, fraction and garbage collection in hand-checkable steps. Rules: docs/caching_allocator.md.
#include "memory/caching_allocator.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "hw_models/input_error.hpp"
#include "support/allocator_fixture.hpp"

using namespace stepcast::memory;
using stepcast::test::HandAllocator;
using Kind = Outcome::Kind;

namespace {

Settings max_split(std::int64_t bytes) {
  Settings settings;
  settings.max_split_size = bytes;
  return settings;
}

}  // namespace

TEST_CASE("3 MiB on an empty card: a 20 MiB segment, 17 MiB of it free and split off") {
  HandAllocator hand(1024 * kMiB);
  const Outcome three = hand.malloc(3 * kMiB);
  CHECK(three.kind == Kind::done);
  CHECK(three.bytes == 3 * kMiB);
  CHECK(three.segment_bytes == 20 * kMiB);
  CHECK(three.device_mallocs == 1);
  CHECK(hand.now().allocated == 3 * kMiB);
  CHECK(hand.now().active == 3 * kMiB);
  CHECK(hand.now().reserved == 20 * kMiB);
  CHECK(hand.now().inactive_split == 17 * kMiB);
  CHECK(hand.now().segments == 1);
  CHECK(hand.now().device_mallocs == 1);

  const Outcome four = hand.malloc(4 * kMiB);  // from the 17 MiB
  CHECK(four.device_mallocs == 0);
  CHECK(four.segment_bytes == 0);
  CHECK(hand.allocator.address(four.block) == hand.allocator.address(three.block) + 3 * kMiB);
  CHECK(hand.now().inactive_split == 13 * kMiB);

  hand.free(three);
  CHECK(hand.now().inactive_split == 16 * kMiB);
  hand.free(four);  // all merged: nothing is split any more, and the segment stays cached
  CHECK(hand.now().inactive_split == 0);
  CHECK(hand.now().reserved == 20 * kMiB);
}

TEST_CASE("a gathered 7B block of 386.02 MiB takes a segment of 388 MiB, whole") {
  HandAllocator hand(1024 * kMiB);
  const Outcome gathered = hand.malloc(404'766'720);
  CHECK(hand.now().reserved == 388 * kMiB);
  CHECK(gathered.segment_bytes == 388 * kMiB);
  CHECK(hand.now().allocated == gathered.bytes);
  CHECK(hand.now().requested == 404'766'720);
  CHECK(388 * kMiB - gathered.bytes > kLargeSplitRest);  // 1.98 MiB remain, which is more than 1 MiB, so they are split off
  CHECK(hand.now().inactive_split == 388 * kMiB - gathered.bytes);
}

TEST_CASE("a remainder of 1 MiB or less stays with a large block, 512 bytes are split off a small one") {
  HandAllocator hand(1024 * kMiB);
  CHECK(hand.malloc(19 * kMiB).bytes == 20 * kMiB);  // segment 20 MiB, remainder exactly 1 MiB
  CHECK(hand.now().inactive_split == 0);
  CHECK(hand.malloc(1).bytes == 512);
  CHECK(hand.now().inactive_split == 2 * kMiB - 512);
}

TEST_CASE("small and large pool and every stream have free lists of their own") {
  HandAllocator hand(1024 * kMiB);
  hand.free(hand.malloc(kMiB, 0));
  CHECK(hand.malloc(kMiB, 1).device_mallocs == 1);
  CHECK(hand.malloc(kMiB + 1, 0).device_mallocs == 1);
  CHECK(hand.malloc(kMiB, 0).device_mallocs == 0);
}

TEST_CASE("best fit takes the smallest block that is large enough, the lowest address among equals") {
  HandAllocator hand(1024 * kMiB);
  const Outcome a = hand.malloc(40 * kMiB), b = hand.malloc(30 * kMiB), c = hand.malloc(30 * kMiB), d = hand.malloc(20 * kMiB);
  const std::uint64_t lower = hand.allocator.address(b.block);
  CHECK(lower < hand.allocator.address(c.block));
  for (const Outcome& outcome : {c, b, a, d}) hand.free(outcome);
  CHECK(hand.allocator.address(hand.malloc(29 * kMiB).block) == lower);
}

TEST_CASE("a block used on another stream comes back only when a later malloc finds its event done") {
  HandAllocator hand(1024 * kMiB);
  const Outcome gathered = hand.malloc(30 * kMiB, 1);
  hand.allocator.record_stream(gathered.block, 0);
  hand.allocator.record_stream(gathered.block, 1);  // its own stream: ignored
  hand.allocator.record_stream(gathered.block, 2);
  hand.free(gathered);
  CHECK(hand.events.recorded[0] == 1);
  CHECK(hand.events.recorded[1] == 0);
  CHECK(hand.events.recorded[2] == 1);
  CHECK(hand.now().allocated == 0);
  CHECK(hand.now().active == 30 * kMiB);

  CHECK(hand.malloc(30 * kMiB, 1).device_mallocs == 1);  // both outstanding
  hand.events.finished[0] = 1;
  CHECK(hand.malloc(30 * kMiB, 1).device_mallocs == 1);  // one outstanding
  hand.events.finished[2] = 1;
  CHECK(hand.now().active == 90 * kMiB);  // done, but nobody has asked yet
  CHECK(hand.malloc(30 * kMiB, 1).device_mallocs == 0);
  CHECK(hand.now().active == 90 * kMiB);
}

TEST_CASE("a stream's queue of deferred frees stops at its first unfinished event") {
  HandAllocator hand(1024 * kMiB);
  const Outcome first = hand.malloc(30 * kMiB, 1), second = hand.malloc(40 * kMiB, 1);
  for (const Outcome& outcome : {first, second}) {
    hand.allocator.record_stream(outcome.block, 0);
    hand.free(outcome);
  }
  hand.malloc(512, 0);
  CHECK(hand.now().active == 70 * kMiB + 512);
  hand.events.finished[0] = 1;
  hand.malloc(512, 0);
  CHECK(hand.now().active == 40 * kMiB + 1024);
}

TEST_CASE("flush: drains, gives back every wholly free segment of all streams and pools, counts one retry") {
  HandAllocator hand(100 * kMiB);
  hand.free(hand.malloc(30 * kMiB, 0));
  hand.free(hand.malloc(kMiB, 1));
  const Outcome pending = hand.malloc(20 * kMiB, 2);
  hand.allocator.record_stream(pending.block, 0);
  hand.free(pending);
  const Outcome kept = hand.malloc(3 * kMiB, 3);  // 20 MiB, partly used: can't go back
  CHECK(hand.now().reserved == 72 * kMiB);

  const Outcome asked = hand.malloc(60 * kMiB, 0);
  CHECK(asked.kind == Kind::must_drain);
  CHECK(asked.block == kNoBlock);
  CHECK(asked.segment_bytes == 60 * kMiB);
  CHECK(hand.now().retries == 0);
  CHECK(hand.now().active == 23 * kMiB);

  const Outcome got = hand.drained(60 * kMiB, 0);
  CHECK(got.kind == Kind::done);
  CHECK(got.released_bytes == 52 * kMiB);
  CHECK(got.device_frees == 3);
  CHECK(got.device_mallocs == 1);
  CHECK(got.segment_bytes == 60 * kMiB);
  CHECK(hand.now().retries == 1);
  CHECK(hand.now().reserved == 80 * kMiB);
  CHECK(hand.now().active == 63 * kMiB);
  CHECK(kept.kind == Kind::done);
}

TEST_CASE("out of memory is an outcome: the flush counts as a retry, the blocks in use stay, later requests still work") {
  HandAllocator hand(100 * kMiB);
  const Outcome kept = hand.malloc(60 * kMiB);
  CHECK(hand.malloc(50 * kMiB).kind == Kind::must_drain);
  const Outcome failed = hand.drained(50 * kMiB);
  CHECK(failed.kind == Kind::out_of_memory);
  CHECK(failed.block == kNoBlock);
  CHECK(failed.segment_bytes == 50 * kMiB);
  CHECK(hand.now().retries == 1);
  CHECK(hand.now().ooms == 1);
  CHECK(hand.now().allocated == 60 * kMiB);
  hand.free(kept);
  CHECK(hand.malloc(50 * kMiB).kind == Kind::done);
  CHECK(hand.malloc(INT64_MAX).kind == Kind::must_drain);
  CHECK(hand.drained(INT64_MAX).kind == Kind::out_of_memory);
}

TEST_CASE("max_split: a request below it may not take an oversize block, and only the one best fit is looked at") {
  HandAllocator hand(1024 * kMiB, max_split(32 * kMiB));
  hand.free(hand.malloc(40 * kMiB));
  CHECK(hand.malloc(30 * kMiB).device_mallocs == 1);  // the 40 MiB block is refused
  CHECK(hand.now().reserved == 70 * kMiB);
  CHECK(hand.malloc(36 * kMiB).bytes == 40 * kMiB);  // an oversize request takes it, and does not split it although 4 MiB remain
  CHECK(hand.now().inactive_split == 0);
}

TEST_CASE("max_split: an oversize request takes no block that is 20 MiB or more larger") {
  HandAllocator hand(1024 * kMiB, max_split(32 * kMiB));
  hand.free(hand.malloc(60 * kMiB));
  CHECK(hand.malloc(40 * kMiB).device_mallocs == 1);        // 60 >= 40 + 20
  CHECK(hand.malloc(40 * kMiB + 512).device_mallocs == 0);  // 60 < 40 + 20 + 512 B
}

TEST_CASE("max_split: 512 MiB change nothing for gathered blocks of 386 MiB") {
  for (const Settings& settings : {Settings{}, max_split(512 * kMiB)}) {
    HandAllocator hand(4096 * kMiB, settings);
    hand.free(hand.malloc(404'766'720));
    const Outcome shard = hand.malloc(300 * kMiB);
    CHECK(shard.device_mallocs == 0);
    CHECK(hand.now().reserved == 388 * kMiB);
    CHECK(hand.now().inactive_split == 88 * kMiB);
  }
}

TEST_CASE("max_split: without room, free oversize blocks go back before any flush") {
  SUBCASE("one that is large enough: the smallest such") {
    HandAllocator hand(200 * kMiB, max_split(32 * kMiB));
    const Outcome small = hand.malloc(50 * kMiB), large = hand.malloc(110 * kMiB);
    hand.free(small);
    hand.free(large);
    const Outcome got = hand.malloc(48 * kMiB + 40 * kMiB);  // 88: the 110 block is 22 larger, so no fit; 160 + 88 > 200; 110 >= 88 goes back
    CHECK(got.kind == Kind::done);
    CHECK(got.released_bytes == 110 * kMiB);
    CHECK(got.device_frees == 1);
    CHECK(hand.now().reserved == 138 * kMiB);
    CHECK(hand.now().retries == 0);
  }
  SUBCASE("several from the largest down, until they add up") {
    HandAllocator hand(150 * kMiB, max_split(32 * kMiB));
    const Outcome a = hand.malloc(40 * kMiB), b = hand.malloc(44 * kMiB), c = hand.malloc(36 * kMiB);
    for (const Outcome& outcome : {a, b, c}) hand.free(outcome);
    const Outcome got = hand.malloc(80 * kMiB);  // 44 + 40 >= 80
    CHECK(got.kind == Kind::done);
    CHECK(got.released_bytes == 84 * kMiB);
    CHECK(got.device_frees == 2);
    CHECK(hand.now().reserved == 116 * kMiB);
  }
  SUBCASE("too little: what was freed stays freed, and the flush follows") {
    HandAllocator hand(150 * kMiB, max_split(32 * kMiB));
    const Outcome kept = hand.malloc(100 * kMiB);
    hand.free(hand.malloc(40 * kMiB));
    const Outcome got = hand.malloc(60 * kMiB);
    CHECK(got.kind == Kind::must_drain);
    CHECK(got.released_bytes == 40 * kMiB);
    CHECK(got.device_frees == 1);
    CHECK(hand.now().reserved == 100 * kMiB);
    CHECK(hand.drained(60 * kMiB).kind == Kind::out_of_memory);
    CHECK(kept.kind == Kind::done);
  }
}

TEST_CASE("memory_fraction limits what may be reserved, rounded down to bytes") {
  Settings settings;
  settings.memory_fraction = 0.5;
  HandAllocator hand(100 * kMiB, settings);
  CHECK(hand.malloc(50 * kMiB).kind == Kind::done);
  CHECK(hand.malloc(512).kind == Kind::must_drain);
}

TEST_CASE("garbage collection gives back the blocks that have been free for at least the mean number of lookups, then stops") {
  Settings settings;
  settings.memory_fraction = 1.0;
  settings.garbage_collection_threshold = 0.5;  // of 200 MiB: collect above 100 MiB
  HandAllocator hand(200 * kMiB, settings);
  const Outcome a = hand.malloc(40 * kMiB), b = hand.malloc(44 * kMiB), c = hand.malloc(36 * kMiB);  // 120 MiB; nothing free while they are asked for
  hand.free(a);                                                                                      // free since lookup 3
  const Outcome probe = hand.malloc(38 * kMiB);  // lookup 4 takes a again, which keeps its 2 MiB rest split off
  hand.free(b);                                  // since 4
  hand.free(probe);                              // since 4, merged with the rest
  hand.free(hand.malloc(30 * kMiB, 1));          // lookup 5: ages 1 and 1, mean 1, both go back to come under 100; the new block is free since 5
  CHECK(hand.now().device_frees == 2);
  CHECK(hand.now().reserved == (36 + 30) * kMiB);
  CHECK(hand.now().retries == 0);
  hand.free(c);
}

TEST_CASE("garbage collection spares the younger blocks if the older ones suffice") {
  Settings settings;
  settings.memory_fraction = 1.0;
  settings.garbage_collection_threshold = 0.5;
  HandAllocator hand(200 * kMiB, settings);
  const Outcome a = hand.malloc(60 * kMiB), b = hand.malloc(30 * kMiB), c = hand.malloc(20 * kMiB);  // 110 MiB, lookups 1 to 3
  hand.free(c);                                                                                      // free since lookup 3
  hand.free(hand.malloc(20 * kMiB));                                                                 // lookup 4 takes c; free since 4
  hand.free(b);                                                                                      // free since 4
  CHECK(hand.malloc(18 * kMiB).bytes == 18 * kMiB);                                                  // lookup 5: a piece of c, whose rest can't go back
  hand.free(a);                                                                                      // free since 5
  CHECK(hand.malloc(70 * kMiB).kind == Kind::done);  // lookup 6: ages b 2, a 1, mean 1.5; b's 30 MiB reach the 10 MiB wanted
  CHECK(hand.now().device_frees == 1);
  CHECK(hand.now().reserved == (60 + 20 + 70) * kMiB);
}

TEST_CASE("a request of nothing is done without a block") {
  HandAllocator hand(100 * kMiB);
  const Outcome nothing = hand.malloc(0);
  CHECK(nothing.kind == Kind::done);
  CHECK(nothing.block == kNoBlock);
  hand.allocator.record_stream(nothing.block, 1);
  hand.free(nothing);
  CHECK(hand.now() == Statistics{});
}

TEST_CASE("misuse throws and changes nothing") {
  HandAllocator hand(100 * kMiB);
  const Outcome block = hand.malloc(kMiB, 1);
  CHECK_THROWS_AS(hand.malloc(-1), std::invalid_argument);
  CHECK_THROWS_AS(hand.malloc(512, 4), std::invalid_argument);
  CHECK_THROWS_AS(hand.malloc(512, -1), std::invalid_argument);
  CHECK_THROWS_AS(hand.allocator.record_stream(block.block, 4), std::invalid_argument);
  CHECK_THROWS_AS(hand.allocator.free(77), std::invalid_argument);
  hand.allocator.record_stream(block.block, 0);
  hand.free(block);
  CHECK_THROWS_AS(hand.free(block), std::invalid_argument);  // pending
  hand.events.complete_all();
  hand.malloc(512, 0);
  CHECK_THROWS_AS(hand.free(block), std::invalid_argument);  // free
  CHECK(hand.now().allocated == 512);
}

TEST_CASE("settings that PyTorch refuses are refused with their place") {
  const auto refused = [](const Settings& settings) { CHECK_THROWS_AS(HandAllocator(100 * kMiB, settings), stepcast::InputError); };
  refused(max_split(20 * kMiB));
  refused(max_split(-1));
  Settings settings;
  for (const std::int64_t divisions : {std::int64_t{3}, std::int64_t{-2}, std::int64_t{1} << 40}) {
    settings.roundup_power2_divisions = divisions;
    refused(settings);
  }
  settings = {};
  for (const double fraction : {0.0, 1.01, -0.5, std::numeric_limits<double>::quiet_NaN()}) {
    settings.memory_fraction = fraction;
    refused(settings);
  }
  settings = {};
  for (const double threshold : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    settings.garbage_collection_threshold = threshold;
    refused(settings);
  }
  CHECK_THROWS_WITH(HandAllocator(100 * kMiB, max_split(kMiB)),
                    "allocator settings: /allocator/max_split_size: must be above 20 MiB; leave it out for no limit");
  CHECK_THROWS_AS(HandAllocator(-1), stepcast::InputError);
}

TEST_CASE("two allocators live side by side, and one may be moved") {
  HandAllocator one(100 * kMiB), other(100 * kMiB);
  const Outcome block = one.malloc(30 * kMiB);
  CachingAllocator moved = std::move(one.allocator);
  CHECK(moved.statistics().allocated == 30 * kMiB);
  CHECK(other.now().allocated == 0);
  moved.free(block.block);
  CHECK(moved.statistics().allocated == 0);
}
