// The free list against an ordered set: same order, same best fit. Rules: docs/caching_allocator.md, "Best fit".
#include "memory/free_list.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <tuple>

using namespace stepcast::memory;

namespace {

using Ordered = std::set<std::tuple<std::int64_t, std::uint64_t, BlockId>>;

std::vector<BlockId> ids(const Ordered& ordered) {
  std::vector<BlockId> all;
  for (const auto& entry : ordered) all.push_back(std::get<2>(entry));
  return all;
}

BlockId best(const Ordered& ordered, std::int64_t size) {
  const auto at = ordered.lower_bound({size, 0, 0});
  return at == ordered.end() ? kNoBlock : std::get<2>(*at);
}

void compare_at_random(std::uint32_t seed, std::int64_t distinct_sizes, std::int64_t unit) {
  std::mt19937 generator(seed);
  const auto draw = [&](std::int64_t below) { return static_cast<std::int64_t>(generator() % static_cast<std::uint32_t>(below)); };
  Blocks blocks;
  FreeList list;
  Ordered ordered;
  for (int i = 0; i < 4000; ++i) {
    if (draw(5) < 3) {
      const std::int64_t size = (draw(distinct_sizes) + 1) * unit;
      const auto address = static_cast<std::uint64_t>(draw(1 << 30)) * (std::uint64_t{4096} * 512) + static_cast<std::uint64_t>(i) * 512;
      const BlockId id = blocks.add({.size = size, .address = address});
      list.insert(blocks[id], id);
      ordered.emplace(size, address, id);
    } else if (!ordered.empty()) {
      const auto at = std::next(ordered.begin(), draw(static_cast<std::int64_t>(ordered.size())));
      list.erase(blocks[std::get<2>(*at)], std::get<2>(*at));
      blocks.drop(std::get<2>(*at));
      ordered.erase(at);
    }
    const std::int64_t wanted = (draw(distinct_sizes + 2) + 1) * unit;
    REQUIRE(list.best_fit(wanted).block == best(ordered, wanted));
    if (i % 100 == 0) REQUIRE(list.sorted() == ids(ordered));
  }
}

}  // namespace

TEST_CASE("a free list orders blocks and finds the best fit as an ordered set does") {
  SUBCASE("many sizes") { compare_at_random(1, 5000, 512); }
  SUBCASE("one size, order by address") { compare_at_random(2, 1, 2 << 20); }
  SUBCASE("few sizes in one bin") { compare_at_random(3, 7, 512); }
  SUBCASE("huge sizes") { compare_at_random(4, 1000, kMaxBytes / 1024); }
}

TEST_CASE("size bins rise with the size and hold one size only below 8 KiB") {
  for (std::int64_t size = 512; size < 8192; size += 512) CHECK(size_bin(size + 512) == size_bin(size) + 1);
  for (std::int64_t size = 8192; size < kMaxBytes; size = size * 9 / 8 / 512 * 512) CHECK(size_bin(size) <= size_bin(size + 512));
  CHECK(size_bin(16 << 20) == size_bin((18 << 20) - 512));  // 16 MiB to below 18 MiB: one eighth of the octave
  CHECK(size_bin(18 << 20) == size_bin(16 << 20) + 1);
}

TEST_CASE("an empty list fits nothing, nor does a size beyond every block") {
  Blocks blocks;
  FreeList list;
  CHECK(list.best_fit(512).block == kNoBlock);
  const BlockId id = blocks.add({.size = 1024, .address = 4096});
  list.insert(blocks[id], id);
  CHECK(list.best_fit(1536).block == kNoBlock);
  CHECK(list.best_fit(kMaxBytes + 512).block == kNoBlock);
  CHECK(list.best_fit(1024).block == id);
}
