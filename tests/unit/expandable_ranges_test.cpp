// Expandable segments in hand-checkable steps: pages of 2 and 20 MiB, growth at the end, holes after a flush. Rules: docs/caching_allocator.md, "Expandable segments".
#include "memory/expandable_ranges.hpp"

#include <doctest/doctest.h>

#include "support/allocator_fixture.hpp"

using namespace stepcast::memory;
using stepcast::test::HandAllocator;
using Kind = Outcome::Kind;

namespace {

Settings expandable() {
  Settings settings;
  settings.expandable_segments = true;
  return settings;
}

}  // namespace

TEST_CASE("a range grows page by page, using the free rest at its end, and never counts as split") {
  HandAllocator hand(400 * kMiB, expandable());
  const Outcome first = hand.malloc(30 * kMiB);
  CHECK(first.bytes == 30 * kMiB);
  CHECK(first.segment_bytes == 40 * kMiB);
  CHECK(hand.now().reserved == 40 * kMiB);
  CHECK(hand.now().inactive_split == 0);
  const Outcome second = hand.malloc(25 * kMiB);  // 10 MiB left + one page of 20 MiB
  CHECK(second.segment_bytes == 20 * kMiB);
  CHECK(hand.allocator.address(second.block) == hand.allocator.address(first.block) + 30 * kMiB);
  CHECK(hand.now().reserved == 60 * kMiB);
  CHECK(hand.now().device_mallocs == 2);
  CHECK(hand.now().segments == 1);
  CHECK(hand.malloc(512).segment_bytes == 2 * kMiB);  // the small pool has a range of its own
  CHECK(hand.now().segments == 2);
}

TEST_CASE("growing sizes leave one merged range behind, where fixed segments pile up") {
  HandAllocator fixed(2000 * kMiB), growing(2000 * kMiB, expandable());
  for (std::int64_t size = 100; size <= 400; size += 20) {
    fixed.free(fixed.malloc(size * kMiB));
    growing.free(growing.malloc(size * kMiB));
  }
  CHECK(growing.now().reserved == 400 * kMiB);
  // 100, 120, ... each a segment of its own; from 1,920 MiB (100 to 320) on the 340 does not fit into 2,000: flush.
  CHECK(fixed.malloc(420 * kMiB).kind == Kind::must_drain);
  CHECK(fixed.now().reserved > 400 * kMiB);
}

TEST_CASE("a flush unmaps the whole pages inside free blocks, and the hole is filled again from its lowest end") {
  HandAllocator hand(200 * kMiB, expandable());
  const Outcome a = hand.malloc(30 * kMiB), b = hand.malloc(70 * kMiB), c = hand.malloc(20 * kMiB);  // 0..30, 30..100, 100..120
  CHECK(hand.now().reserved == 120 * kMiB);
  hand.free(b);
  CHECK(hand.malloc(100 * kMiB, 1).kind == Kind::must_drain);
  const Outcome other = hand.drained(100 * kMiB, 1);
  CHECK(other.kind == Kind::done);
  CHECK(other.released_bytes == 60 * kMiB);  // pages 40..100; 30..40 shares its page with a
  CHECK(other.device_frees == 1);
  CHECK(hand.now().reserved == 160 * kMiB);

  const Outcome again = hand.malloc(45 * kMiB);  // 10 MiB free at 30 + two pages of the hole
  CHECK(again.segment_bytes == 40 * kMiB);
  CHECK(hand.allocator.address(again.block) == hand.allocator.address(a.block) + 30 * kMiB);
  CHECK(hand.now().reserved == 200 * kMiB);
  CHECK(c.kind == Kind::done);
}

TEST_CASE("a request may span several holes with free memory between them: one device malloc for each hole") {
  HandAllocator hand(200 * kMiB, expandable());
  const Outcome a = hand.malloc(40 * kMiB), b = hand.malloc(30 * kMiB), c = hand.malloc(50 * kMiB), d = hand.malloc(20 * kMiB);  // ends at 40, 70, 120, 140
  hand.free(a);
  hand.free(c);
  CHECK(hand.malloc(150 * kMiB, 1).kind == Kind::must_drain);
  CHECK(hand.drained(150 * kMiB, 1).kind == Kind::out_of_memory);  // 40 + 40 go back (0..40 and 80..120): 60 stay, 60 + 160 > 200
  CHECK(hand.now().reserved == 60 * kMiB);
  CHECK(hand.now().device_frees == 2);
  hand.free(b);  // 40..80 free now, between the holes 0..40 and 80..120
  const Outcome wide = hand.malloc(110 * kMiB);
  CHECK(wide.device_mallocs == 2);
  CHECK(wide.segment_bytes == 80 * kMiB);
  CHECK(hand.allocator.snapshot().front().size == 110 * kMiB);
  hand.free(wide);
  hand.free(d);
  CHECK(hand.malloc(140 * kMiB).device_mallocs == 0);  // all merged again
}

TEST_CASE("where fragments leave no addresses, a second range begins, as long as there is memory") {
  HandAllocator hand(160 * kMiB, expandable());  // a range of 180 MiB
  const Outcome a = hand.malloc(60 * kMiB), b = hand.malloc(20 * kMiB), c = hand.malloc(60 * kMiB), d = hand.malloc(20 * kMiB);
  hand.free(a);
  hand.free(c);
  CHECK(hand.malloc(70 * kMiB).kind == Kind::must_drain);  // 60 free, 60 free, 20 unmapped: nowhere 70 in a row, and the card is full
  const Outcome wide = hand.drained(70 * kMiB);
  CHECK(wide.kind == Kind::done);
  CHECK(hand.now().reserved == (20 + 20 + 80) * kMiB);
  CHECK(hand.allocator.address(wide.block) >= hand.allocator.address(d.block) + 40 * kMiB);  // behind the first range's end at 180
  hand.free(wide);
  CHECK(hand.malloc(80 * kMiB, 1).kind == Kind::must_drain);
  CHECK(hand.drained(80 * kMiB, 1).kind == Kind::done);  // its pages go back like all others
  CHECK(hand.now().reserved == 120 * kMiB);
  CHECK(b.kind == Kind::done);
}

TEST_CASE("a mapping that would exceed the card happens not at all") {
  HandAllocator hand(50 * kMiB, expandable());
  const Outcome kept = hand.malloc(15 * kMiB);
  CHECK(hand.malloc(30 * kMiB).kind == Kind::must_drain);  // 5 MiB free + 2 pages = 60 MiB > 50
  CHECK(hand.now().reserved == 20 * kMiB);
  const Outcome failed = hand.drained(30 * kMiB);
  CHECK(failed.kind == Kind::out_of_memory);
  CHECK(failed.segment_bytes == 40 * kMiB);
  CHECK(hand.malloc(25 * kMiB).kind == Kind::done);  // 5 MiB free + 1 page
  CHECK(kept.kind == Kind::done);
}

TEST_CASE("a range whose last page goes back is no segment any more") {
  HandAllocator hand(50 * kMiB, expandable());
  hand.free(hand.malloc(40 * kMiB, 0));
  CHECK(hand.malloc(40 * kMiB, 1).kind == Kind::must_drain);
  CHECK(hand.drained(40 * kMiB, 1).kind == Kind::done);
  CHECK(hand.now().segments == 1);
  CHECK(hand.now().device_frees == 1);
}
