// An allocator that polls deferred frees only for requests that they could serve hands out the same blocks as one that always polls, and so does one that is not
// asked for a poll where no event of the streams that it names is done. docs/caching_allocator.md, "Deferred frees".
#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

#include "memory/caching_allocator.hpp"

using namespace stepcast;

namespace {

constexpr int kStreamCount = 4;
constexpr std::int64_t kDevice = 256LL << 20;

/// Positions of streams that move on between calls.
class Streams final : public memory::EventSource {
 public:
  std::uint64_t record(int stream) override { return enqueued[static_cast<std::size_t>(stream)]; }
  [[nodiscard]] bool done(int stream, std::uint64_t event) const override { return finished[static_cast<std::size_t>(stream)] >= event; }
  std::array<std::uint64_t, kStreamCount> enqueued{}, finished{};
};

memory::Settings settings_of(unsigned flags) {
  memory::Settings settings;
  if (flags & 1u) settings.max_split_size = 32LL << 20;
  if (flags & 2u) settings.expandable_segments = true;
  if (flags & 4u) settings.memory_fraction = 0.9, settings.garbage_collection_threshold = 0.5;
  return settings;
}

/// The same calls to both; every answer must be the same.
struct Pair {
  explicit Pair(unsigned flags) : always(settings_of(flags), kDevice, kStreamCount, streams), lazy(settings_of(flags), kDevice, kStreamCount, streams) {
    lazy.poll_when_needed();
  }

  void malloc(std::int64_t bytes, int stream) {
    if (lazy.polls(bytes, stream) == 0) ++unpolled;
    memory::Outcome a = always.malloc(bytes, stream), b = lazy.malloc(bytes, stream);
    REQUIRE(a.kind == b.kind);
    if (a.kind == memory::Outcome::Kind::must_drain) {
      streams.finished = streams.enqueued;
      a = always.malloc_after_drain(bytes, stream);
      b = lazy.malloc_after_drain(bytes, stream);
      ++drained;
    }
    REQUIRE(a.kind == b.kind);
    REQUIRE(a.bytes == b.bytes);
    REQUIRE(a.device_mallocs == b.device_mallocs);
    REQUIRE(a.device_frees == b.device_frees);
    REQUIRE(always.statistics().reserved == lazy.statistics().reserved);
    REQUIRE(always.statistics().allocated == lazy.statistics().allocated);
    if (a.kind != memory::Outcome::Kind::done) return;
    REQUIRE(always.address(a.block) == lazy.address(b.block));
    live.emplace_back(a.block, b.block);
  }

  void share(std::size_t i, int stream) {
    always.record_stream(live[i].first, stream);
    lazy.record_stream(live[i].second, stream);
  }

  void free(std::size_t i) {
    always.free(live[i].first);
    lazy.free(live[i].second);
    live[i] = live.back();
    live.pop_back();
  }

  Streams streams;
  memory::CachingAllocator always, lazy;
  std::vector<std::pair<memory::BlockId, memory::BlockId>> live;
  int unpolled = 0, drained = 0;
};

void play(Pair& pair, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int i = 0; i < 3000; ++i) {
    const std::size_t s = below(kStreamCount);
    switch (below(6)) {
      case 0:
      case 1: pair.malloc(std::int64_t{512} << below(17), static_cast<int>(s)); break;
      case 2: pair.streams.enqueued[s] += 1 + below(3); break;
      case 3: pair.streams.finished[s] += below(1 + pair.streams.enqueued[s] - pair.streams.finished[s]); break;
      case 4:
        if (!pair.live.empty()) pair.share(below(pair.live.size()), static_cast<int>(s));
        break;
      default:
        if (!pair.live.empty()) pair.free(below(pair.live.size()));
    }
  }
}

}  // namespace

TEST_CASE("polling only when needed hands out the same blocks") {
  int unpolled = 0, drained = 0;
  for (unsigned flags = 0; flags < 8; ++flags) {
    for (std::uint32_t seed = 1; seed <= 10; ++seed) {
      Pair pair(flags);
      play(pair, seed);
      unpolled += pair.unpolled;
      drained += pair.drained;
    }
  }
  // The sequences must reach what they are meant to test.
  CHECK(unpolled > 1000);
  CHECK(drained > 100);
}

TEST_CASE("the streams that a request polls are those that blocks of its own list wait for") {
  Streams streams;
  memory::CachingAllocator allocator({}, kDevice, kStreamCount, streams);
  const memory::BlockId block = allocator.malloc(4 << 20, 1).block;
  allocator.record_stream(block, 2);
  streams.enqueued[2] = 7;
  CHECK(allocator.polls(4 << 20, 1) == 0);
  allocator.free(block);
  CHECK(allocator.polls(4 << 20, 1) == 4);  // bit 2
  CHECK(allocator.polls(512, 0) == 4);      // its counters are looked at by whoever asks
  allocator.poll_when_needed();
  CHECK(allocator.polls(4 << 20, 1) == 4);
  CHECK(allocator.polls(512, 1) == 0);      // the small pool
  CHECK(allocator.polls(4 << 20, 0) == 0);  // another stream's pool
  streams.finished[2] = 7;
  CHECK(allocator.malloc(4 << 20, 1).block == block);
  CHECK(allocator.polls(4 << 20, 1) == 0);
}
