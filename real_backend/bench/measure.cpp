// Measures kernels and collectives, batch by batch.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "real_backend/bench/kernels.hpp"
#include "real_backend/bench/ranks.hpp"

namespace stepcast::real::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using program::Stream;

constexpr double kBatch = 0.01;             // seconds: beginning and end of a batch don't count in it
constexpr std::int64_t kMostInBatch = 500;  // so that the queue is never full
constexpr std::int64_t kMostHeads = 200;

double seconds_from(SteadyClock::time_point begin) { return std::chrono::duration<double>(SteadyClock::now() - begin).count(); }

/// Of slices of one category, without the first few: seconds that one takes.
double mean_of(const std::vector<trace::Slice>& slices, trace::Category category, std::size_t skipped) {
  double sum = 0;
  std::size_t count = 0;
  for (const trace::Slice& slice : slices) {
    if (slice.category != category || count++ < skipped) continue;
    sum += static_cast<double>((slice.end - slice.begin).count()) * 1e-12;
  }
  return sum / static_cast<double>(std::max(std::size_t{1}, count - std::min(count, skipped)));
}

/// What a rank's stream is busy with while its host enqueues a batch: else the device would wait for the host, and each kernel would seem longer than it is.
class HeadStart {
 public:
  explicit HeadStart(Pool& pool, std::int64_t bytes) : call_{program::Function::zero, {{0, hw::Dtype::fp32, 0, bytes / 4}}, {}}, buffers_(call_, pool) {}
  static std::int64_t bytes(std::int64_t of) { return of + 2 * Pool::rounded(1); }
  /// Enough of it for `seconds`.
  std::size_t take(Device& device, double seconds) {
    const auto count = static_cast<std::size_t>(std::clamp(static_cast<std::int64_t>(std::ceil(seconds / one_)), std::int64_t{1}, kMostHeads));
    for (std::size_t i = 0; i < count; ++i) launch(device, call_, buffers_.parts());
    return count;
  }
  void time(Device& device) {
    take(device, 3 * one_);
    device.synchronize();
    one_ = std::max(1e-7, mean_of(device.take_slices(), trace::Category::kernel, 1));
  }

 private:
  program::Call call_;
  Buffers buffers_;
  double one_ = 1;
};

/// Work that is enqueued again and again on all ranks.
class Batches {
 public:
  using Enqueue = std::function<void(std::size_t rank, Device& device, std::int64_t count)>;
  /// `category`: of what is timed. `by_slices`: work of this category alone, as the trace has it, whatever else runs; otherwise from outside.
  Batches(Ranks& ranks, trace::Category category, bool by_slices, Enqueue enqueue)
      : ranks_(ranks), category_(category), by_slices_(by_slices), enqueue_(std::move(enqueue)), took_(ranks.size()), heads_(ranks.size()) {
    if (!ranks_.target().own_clock || category_ != trace::Category::kernel) return;
    ranks_.on_all([this](std::size_t rank, Pool& pool) { heads_[rank].emplace(pool, ranks_.target().head_start).time(pool.device()); });
  }
  static std::int64_t bytes(const Target& target) { return target.own_clock ? HeadStart::bytes(target.head_start) : 0; }

  /// Seconds of one of `count`.
  double run(std::int64_t count) {
    ranks_.on_all([&](std::size_t rank, Pool& pool) { took_[rank] = run_on(rank, pool.device(), count); });
    const auto [least, most] = std::minmax_element(took_.begin(), took_.end());
    return by_slices_ && category_ == trace::Category::collective ? *least : *most;  // whoever comes last doesn't wait for others
  }
  /// Batches of as many as fill kBatch.
  Quartiles repeated(const Effort& effort) {
    run(1);
    const double one = run(1);
    const auto count = std::clamp(static_cast<std::int64_t>(kBatch / std::max(one, 1e-9)), std::int64_t{1}, kMostInBatch);
    if (ranks_.target().own_clock) run(count);  // tells how long the host needs for it
    return repeat(effort, [&] { return run(count); });
  }

 private:
  double run_on(std::size_t rank, Device& device, std::int64_t count) {
    const std::size_t heads = heads_[rank] ? heads_[rank]->take(device, host_needs_ * static_cast<double>(count)) : 0;
    const auto begin = SteadyClock::now();
    enqueue_(rank, device, count);
    if (rank == 0) host_needs_next_ = seconds_from(begin) / static_cast<double>(count);
    device.synchronize();
    const double took = seconds_from(begin) / static_cast<double>(count);
    const std::vector<trace::Slice> slices = device.take_slices();
    if (rank == 0) host_needs_ = host_needs_next_;
    return by_slices_ ? mean_of(slices, category_, heads) : took;
  }

  Ranks& ranks_;
  trace::Category category_;
  bool by_slices_;
  Enqueue enqueue_;
  std::vector<double> took_;
  std::vector<std::optional<HeadStart>> heads_;
  double host_needs_ = 0, host_needs_next_ = 0;
};

/// Kernels on all ranks, each with operands of its own.
class Kernels {
 public:
  Kernels(Ranks& ranks, const program::Call& call) : call_(call), operands_(ranks.size()), turn_(ranks.size()) {
    ranks.on_all([&](std::size_t rank, Pool& pool) { operands_[rank].emplace(call, ranks.target().outgrows, pool); });
  }
  static std::int64_t bytes(const Target& target, const program::Call& call) { return Operands::bytes(call, target.outgrows); }
  void enqueue(std::size_t rank, Device& device, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) launch(device, call_, operands_[rank]->parts(turn_[rank]++));
  }

 private:
  const program::Call& call_;
  std::vector<std::optional<Operands>> operands_;
  std::vector<std::size_t> turn_;
};

program::CollectiveEntry entry_of(const hw::CollectiveShape& shape) { return {shape, program::Communicator::shard, false, hw::name(shape.kind), false}; }

/// Collectives on a stream of their own.
class Collectives {
 public:
  static constexpr std::size_t kEvents = 2;  // behind the other stream's work, behind the collective

  explicit Collectives(Ranks& ranks) : entry_(ranks.collective()), memory_(ranks.size()) {
    const program::Part in{0, entry_.shape.dtype, 0, elements()}, out{1, entry_.shape.dtype, 0, elements()};
    ranks.on_all([&](std::size_t rank, Pool& pool) { memory_[rank].emplace(program::Call{program::Function::copy, {in, out}, {}}, pool); });
  }
  static std::int64_t bytes(const hw::CollectiveShape& shape) { return 2 * Pool::rounded(shape.bytes + Pool::rounded(1)); }
  void enqueue(std::size_t rank, Device& device, std::int64_t count) {
    std::byte *in = memory_[rank]->parts()[0], *out = memory_[rank]->parts()[1];
    for (std::int64_t i = 0; i < count; ++i)
      device.collective(Stream::unshard, {&entry_, in, entry_.shape.kind == hw::CollectiveKind::all_reduce ? in : out, slice()});
  }
  /// As programs do: the collective waits for the other stream, which waits for the collective.
  void enqueue_in_turns(std::size_t rank, Device& device, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      device.record(0, Stream::compute);
      device.wait(Stream::unshard, 0);
      enqueue(rank, device, 1);
      device.record(1, Stream::unshard);
      device.wait(Stream::compute, 1);
    }
  }

 private:
  static trace::Slice slice() {
    trace::Slice slice;
    slice.category = trace::Category::collective;
    return slice;
  }
  [[nodiscard]] std::int64_t elements() const { return entry_.shape.bytes / hw::bytes_per_element(entry_.shape.dtype); }
  const program::CollectiveEntry& entry_;
  std::vector<std::optional<Buffers>> memory_;
};

}  // namespace

Quartiles measure(const Target& target, const KernelCase& kernel, std::int32_t count, const Effort& effort) {
  Ranks ranks(target, count, 0, {}, Kernels::bytes(target, kernel.call) + Batches::bytes(target));
  Kernels kernels(ranks, kernel.call);
  return Batches(ranks, trace::Category::kernel, target.own_clock, [&](std::size_t rank, Device& device, std::int64_t n) { kernels.enqueue(rank, device, n); })
      .repeated(effort);
}

/// As many collectives as last for the kernels, which are slower beside them.
Quartiles measure_beside(const Target& target, const KernelCase& kernel, const hw::CollectiveShape& shape, const Effort& effort) {
  constexpr std::int64_t kSome = 4;
  constexpr double kSlower = 2;
  Ranks ranks(target, shape.group.ranks(), Collectives::kEvents, {entry_of(shape)},
              Kernels::bytes(target, kernel.call) + Collectives::bytes(shape) + 2 * Batches::bytes(target));
  Kernels kernels(ranks, kernel.call);
  Collectives collectives(ranks);
  const auto compute = [&](std::size_t rank, Device& device, std::int64_t n) { kernels.enqueue(rank, device, n); };
  const auto communicate = [&](std::size_t rank, Device& device, std::int64_t n) { collectives.enqueue(rank, device, n); };
  const double work = Batches(ranks, trace::Category::kernel, true, compute).run(kSome);
  const double share = kSlower * work / std::max(1e-9, Batches(ranks, trace::Category::collective, true, communicate).run(kSome));
  return Batches(ranks, trace::Category::kernel, true,
                 [&](std::size_t rank, Device& device, std::int64_t n) {
                   communicate(rank, device, std::clamp(static_cast<std::int64_t>(std::ceil(share * static_cast<double>(n))), std::int64_t{1}, kMostInBatch));
                   compute(rank, device, n);
                 })
      .repeated(effort);
}

Quartiles measure_collective(const Target& target, const hw::CollectiveShape& shape, const Effort& effort) {
  Ranks ranks(target, shape.group.ranks(), Collectives::kEvents, {entry_of(shape)}, Collectives::bytes(shape));
  Collectives collectives(ranks);
  const auto in_turns = [&](std::size_t rank, Device& device, std::int64_t n) { collectives.enqueue_in_turns(rank, device, n); };
  return Batches(ranks, trace::Category::collective, target.own_clock, in_turns).repeated(effort);
}

}  // namespace stepcast::real::bench
