// Runs cases on the host driver.
#include <algorithm>
#include <chrono>

#include "memory/caching_allocator.hpp"
#include "real_backend/bench/kernels.hpp"
#include "real_backend/bench/ranks.hpp"

namespace stepcast::real::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Point = SteadyClock::time_point;
using program::Stream;

constexpr double kBatch = 0.01;             // seconds: beginning and end of a batch don't count in it
constexpr std::int64_t kMostInBatch = 500;  // so that the queue is never full

double seconds(Point begin, Point end) { return std::chrono::duration<double>(end - begin).count(); }

/// Seconds of one of `count` that `enqueue(count)` puts on the streams.
template <class Enqueue>
double per_item(Ranks& ranks, std::int64_t count, Enqueue enqueue) {
  const Point begin = SteadyClock::now();
  enqueue(count);
  ranks.synchronize();
  return seconds(begin, SteadyClock::now()) / static_cast<double>(count);
}

/// Batches of as many as fill kBatch.
template <class Enqueue>
Quartiles in_batches(Ranks& ranks, const Effort& effort, Enqueue enqueue) {
  per_item(ranks, 1, enqueue);
  const double one = per_item(ranks, 1, enqueue);
  const auto count = std::clamp(static_cast<std::int64_t>(kBatch / std::max(one, 1e-9)), std::int64_t{1}, kMostInBatch);
  return repeat(effort, [&] { return per_item(ranks, count, enqueue); });
}

/// Kernels on all ranks, each with operands of its own.
class Kernels {
 public:
  Kernels(Ranks& ranks, const program::Call& call) : ranks_(ranks), call_(call) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) operands_.emplace_back(call);
  }
  void enqueue(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i, ++turn_) {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_.launch(rank, call_, operands_[rank].parts(turn_));
    }
  }

 private:
  Ranks& ranks_;
  const program::Call& call_;
  std::vector<Operands> operands_;
  std::size_t turn_ = 0;
};

/// Collectives on a stream of their own.
class Collectives {
 public:
  static constexpr std::size_t kEvents = 2;  // behind the other stream's work, behind the collective

  Collectives(Ranks& ranks, const hw::CollectiveShape& shape) : ranks_(ranks), entry_{shape, program::Communicator::shard, false, hw::name(shape.kind), false} {
    const auto bytes = static_cast<std::size_t>(shape.bytes);
    in_.assign(ranks.size(), std::vector<std::byte>(bytes, std::byte{0x3c}));
    out_.assign(ranks.size(), std::vector<std::byte>(bytes, std::byte{0}));
  }
  void enqueue(std::size_t rank) {
    std::byte* to = entry_.shape.kind == hw::CollectiveKind::all_reduce ? in_[rank].data() : out_[rank].data();
    ranks_[rank].collective(Stream::unshard, {&entry_, in_[rank].data(), to, {}});
  }
  /// As programs do: the collective waits for the other stream, which waits for the collective.
  void enqueue_in_turns(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank].record(0, Stream::compute);
        ranks_[rank].wait(Stream::unshard, 0);
        enqueue(rank);
        ranks_[rank].record(1, Stream::unshard);
        ranks_[rank].wait(Stream::compute, 1);
      }
    }
  }

 private:
  Ranks& ranks_;
  program::CollectiveEntry entry_;
  std::vector<std::vector<std::byte>> in_, out_;
};

struct NoEvents final : memory::EventSource {
  std::uint64_t record(int) override { return 0; }
  [[nodiscard]] bool done(int, std::uint64_t) const override { return true; }
};

}  // namespace

Quartiles measure(const KernelCase& kernel, std::int32_t count, const Effort& effort) {
  Ranks ranks(count, 0);
  Kernels kernels(ranks, kernel.call);
  return in_batches(ranks, effort, [&](std::int64_t n) { kernels.enqueue(n); });
}

Quartiles measure_launch_call(const Effort& effort) {
  constexpr std::int64_t kCalls = 100;
  Ranks ranks(1, 0);
  const program::Call nothing{program::Function::zero, {{0, hw::Dtype::fp32, 0, 1}}, {}};
  const Buffers buffers(nothing);
  return repeat(effort, [&] {
    const Point begin = SteadyClock::now();
    for (std::int64_t i = 0; i < kCalls; ++i) ranks.launch(0, nothing, buffers.parts());
    const Point end = SteadyClock::now();
    ranks.synchronize();
    return seconds(begin, end) / kCalls;
  });
}

Quartiles measure_launch_latency(const Effort& effort) {
  Failure failure;
  host::Stream stream(failure, "stream");
  Point begun;
  return repeat(effort, [&] {
    const Point begin = SteadyClock::now();
    stream.push([&begun] { begun = SteadyClock::now(); });
    stream.drain();
    return seconds(begin, begun);
  });
}

Quartiles measure_allocation(std::int64_t bytes, const Effort& effort) {
  constexpr int kPairs = 100;
  NoEvents events;
  memory::CachingAllocator allocator({}, std::int64_t{1} << 40, 1, events);
  return repeat(effort, [&] {
    const Point begin = SteadyClock::now();
    for (int i = 0; i < kPairs; ++i) allocator.free(allocator.malloc(bytes, 0).block);
    return seconds(begin, SteadyClock::now()) / (2 * kPairs);
  });
}

Quartiles measure_collective(const hw::CollectiveShape& shape, const Effort& effort) {
  Ranks ranks(shape.group.ranks(), Collectives::kEvents);
  Collectives collectives(ranks, shape);
  return in_batches(ranks, effort, [&](std::int64_t n) { collectives.enqueue_in_turns(n); });
}

}  // namespace stepcast::real::bench
