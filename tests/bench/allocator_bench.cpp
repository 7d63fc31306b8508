// Speed of the caching allocator: operations (malloc, free or record_stream) per second once a pattern has settled.
// Goal: 10 million a second; docs/caching_allocator.md, "Speed".
#include <benchmark/benchmark.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "memory/caching_allocator.hpp"

namespace {

using namespace stepcast::memory;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kDevice = 76 * 1024 * kMiB;

/// Every event is done one poll after it was recorded at the latest: the pattern decides, not the source.
class PromptEvents final : public EventSource {
 public:
  std::uint64_t record(int) override { return 0; }
  [[nodiscard]] bool done(int, std::uint64_t) const override { return true; }
};

/// One training step of a 7B transformer under fully sharded data parallelism, shapes of 4096 tokens: gathered units on stream 1, reductions on stream 2.
class FsdpStep {
 public:
  explicit FsdpStep(const Settings& settings) : allocator_(settings, kDevice, 3, events_) {}

  std::int64_t run() {
    operations_ = 0;
    for (int layer = 0; layer < kLayers; ++layer) forward();
    while (!saved_.empty()) backward();
    return operations_;
  }

 private:
  static constexpr int kLayers = 32;
  static constexpr std::int64_t kUnit = 405 * 1000 * 1000, kHidden = 32 * kMiB, kFfn = 86 * kMiB;

  BlockId take(std::int64_t bytes, int stream) {
    ++operations_;
    return allocator_.malloc(bytes, stream).block;
  }
  void give(BlockId block) {
    ++operations_;
    allocator_.free(block);
  }
  void give_after(BlockId block, int stream) {
    ++operations_;
    allocator_.record_stream(block, stream);
    give(block);
  }

  /// One unit gathered; of 24 kernels' outputs every second is kept for backward.
  void forward() {
    const BlockId gathered = take(kUnit, 1);
    std::vector<BlockId>& kept = saved_.emplace_back(take_record());
    for (int kernel = 0; kernel < 12; ++kernel) {
      const BlockId temporary = take(kernel % 3 == 0 ? kFfn : kHidden, 0);
      kept.push_back(take(kernel % 4 == 3 ? 16384 * (kernel + 1) : kHidden, 0));
      give(temporary);
    }
    give_after(gathered, 0);
  }

  void backward() {
    const BlockId gathered = take(kUnit, 1);
    const BlockId gradient = take(kUnit, 0);
    std::vector<BlockId> kept = std::move(saved_.back());
    saved_.pop_back();
    for (const BlockId block : kept) {
      const BlockId temporary = take(kHidden, 0);
      give(block);
      give(temporary);
    }
    kept.clear();
    records_.push_back(std::move(kept));
    const BlockId reduced = take(kUnit / 32, 2);
    give_after(gathered, 0);
    give_after(gradient, 2);
    give(reduced);
  }

  std::vector<BlockId> take_record() {
    if (records_.empty()) return {};
    std::vector<BlockId> record = std::move(records_.back());
    records_.pop_back();
    return record;
  }

  PromptEvents events_;
  CachingAllocator allocator_;
  std::vector<std::vector<BlockId>> saved_, records_;
  std::int64_t operations_ = 0;
};

void fsdp_step(benchmark::State& state) {
  Settings settings;
  settings.expandable_segments = state.range(0) != 0;
  FsdpStep step(settings);
  step.run();
  std::int64_t operations = 0;
  for (auto _ : state) operations += step.run();
  state.SetItemsProcessed(operations);
}
BENCHMARK(fsdp_step)->ArgName("expandable")->Arg(0)->Arg(1);

std::uint64_t next_random(std::uint64_t& state) {  // SplitMix64
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// `live` blocks of random size (a third of them small), one of them replaced at random each time.
void random_replacement(benchmark::State& state) {
  PromptEvents events;
  CachingAllocator allocator({}, kDevice, 1, events);
  std::uint64_t seed = 7;
  const auto random_size = [&] {
    const std::uint64_t draw = next_random(seed);
    return static_cast<std::int64_t>(draw % 3 == 0 ? 512 + (draw >> 8) % 200'000 : 512 + (draw >> 8) % 16'000'000);
  };
  std::vector<std::int64_t> sizes(4096);
  for (std::int64_t& size : sizes) size = random_size();
  std::vector<BlockId> live(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < live.size(); ++i) live[i] = allocator.malloc(sizes[i % sizes.size()], 0).block;
  const auto replace = [&](std::uint64_t draw) {
    BlockId& block = live[draw % live.size()];
    allocator.free(block);
    block = allocator.malloc(sizes[(draw >> 32) % sizes.size()], 0).block;
  };
  for (int i = 0; i < 1'000'000; ++i) replace(next_random(seed));
  for (auto _ : state) replace(next_random(seed));
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(random_replacement)->ArgName("live")->Arg(64)->Arg(512)->Arg(4096);

}  // namespace
