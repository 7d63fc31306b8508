// Measures what the host does for a device: launches, memory, copies.
#include <chrono>
#include <optional>

#include "memory/caching_allocator.hpp"
#include "real_backend/bench/kernels.hpp"
#include "real_backend/bench/ranks.hpp"

namespace stepcast::real::bench {
namespace {

using HostClock = std::chrono::steady_clock;

double seconds_since(HostClock::time_point begin) { return std::chrono::duration<double>(HostClock::now() - begin).count(); }

/// `once` on the host of a single rank.
Quartiles on_one(Ranks& ranks, const Effort& effort, const std::function<double(Pool& pool)>& once) {
  Quartiles result;
  ranks.on_all([&](std::size_t, Pool& pool) { result = repeat(effort, [&] { return once(pool); }); });
  return result;
}

const program::Call& nothing() {
  static const program::Call kNothing{program::Function::zero, {{0, hw::Dtype::fp32, 0, 1}}, {}};
  return kNothing;
}

struct NoEvents final : memory::EventSource {
  std::uint64_t record(int) override { return 0; }
  [[nodiscard]] bool done(int, std::uint64_t) const override { return true; }
};

}  // namespace

Quartiles measure_launch_call(const Target& target, const Effort& effort) {
  constexpr std::int64_t kCalls = 100;
  Ranks ranks(target, 1, 0, {}, Buffers::bytes(nothing()));
  std::optional<Buffers> buffers;
  return on_one(ranks, effort, [&](Pool& pool) {
    if (!buffers) buffers.emplace(nothing(), pool);
    const auto begin = HostClock::now();
    for (std::int64_t i = 0; i < kCalls; ++i) launch(pool.device(), nothing(), buffers->parts());
    const double took = seconds_since(begin);
    pool.device().synchronize();
    pool.device().take_slices();
    return took / kCalls;
  });
}

Quartiles measure_launch_latency(const Target& target, const Effort& effort) {
  Ranks ranks(target, 1, 0, {}, Buffers::bytes(nothing()));
  std::optional<Buffers> buffers;
  return on_one(ranks, effort, [&](Pool& pool) {
    if (!buffers) buffers.emplace(nothing(), pool);
    const SimTime begin = ranks.clock().now();
    launch(pool.device(), nothing(), buffers->parts());
    pool.device().synchronize();
    return static_cast<double>((pool.device().take_slices().back().begin - begin).count()) * 1e-12;
  });
}

Quartiles measure_allocation(std::int64_t bytes, const Effort& effort) {
  constexpr int kPairs = 100;
  NoEvents events;
  memory::CachingAllocator allocator({}, std::int64_t{1} << 40, 1, events);
  return repeat(effort, [&] {
    const auto begin = HostClock::now();
    for (int i = 0; i < kPairs; ++i) allocator.free(allocator.malloc(bytes, 0).block);
    return seconds_since(begin) / (2 * kPairs);
  });
}

namespace {

/// The segment takes the place of the pool, of which nothing is in use.
double time_of_mapping(Device& device, std::int64_t bytes, bool malloc) {
  const Segment segment{0, bytes};
  device.map({});
  const auto begin = HostClock::now();
  device.map(std::span(&segment, 1));
  const double taken = seconds_since(begin);
  const auto end = HostClock::now();
  device.map({});
  return malloc ? taken : seconds_since(end);
}

}  // namespace

Quartiles measure_device_malloc(const Target& target, std::int64_t bytes, const Effort& effort) {
  Ranks ranks(target, 1, 0, {}, bytes);
  return on_one(ranks, effort, [&](Pool& pool) { return time_of_mapping(pool.device(), bytes, true); });
}

Quartiles measure_device_free(const Target& target, std::int64_t bytes, const Effort& effort) {
  Ranks ranks(target, 1, 0, {}, bytes);
  return on_one(ranks, effort, [&](Pool& pool) { return time_of_mapping(pool.device(), bytes, false); });
}

Quartiles measure_copy(const Target& target, bool to_device, bool pinned, std::int64_t bytes, const Effort& effort) {
  Ranks ranks(target, 1, 0, {}, Pool::rounded(bytes));
  std::vector<std::byte> pageable(static_cast<std::size_t>(bytes), std::byte{1});
  std::shared_ptr<std::byte> locked;
  std::byte* place = nullptr;
  return on_one(ranks, effort, [&](Pool& pool) {
    Device& device = pool.device();
    if (place == nullptr) {
      place = pool.take(bytes);
      device.write(place, pageable);
      if (pinned) locked = device.pinned(bytes);
    }
    const std::span<std::byte> host(pinned ? locked.get() : pageable.data(), static_cast<std::size_t>(bytes));
    const auto begin = HostClock::now();
    if (to_device) device.write(place, host);
    else device.read(place, host);
    return seconds_since(begin);
  });
}

}  // namespace stepcast::real::bench
