// Runs cases on the host driver.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "real_backend/bench/kernels.hpp"
#include "real_backend/failure.hpp"
#include "real_backend/host/group.hpp"
#include "real_backend/host/kernels/run.hpp"
#include "real_backend/host/stream.hpp"

namespace stepcast::real::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Point = SteadyClock::time_point;

double seconds(Point begin, Point end) { return std::chrono::duration<double>(end - begin).count(); }

/// Memory for all buffers of a call, filled with a small number in every type, so that pages are there and no kernel meets a special value.
class Buffers {
 public:
  explicit Buffers(const program::Call& call) {
    std::map<std::uint32_t, std::int64_t> bytes;
    for (const program::Part& p : call.parts) {
      const std::int64_t end = (p.begin + p.per_rank * (p.group - 1) + p.count) * hw::bytes_per_element(p.dtype);
      bytes[p.buffer] = std::max(bytes[p.buffer], end + kLeast);
    }
    for (const auto& [buffer, size] : bytes) memory_[buffer].assign(static_cast<std::size_t>(size), kFill);
    for (const program::Part& p : call.parts)
      parts_.push_back(p.buffer == program::kNoPart ? nullptr : memory_[p.buffer].data() + p.begin * hw::bytes_per_element(p.dtype));
    if (const auto ids = ids_of(call.function)) {
      const program::Part& p = call.parts[*ids];
      std::memset(parts_[*ids], 0, static_cast<std::size_t>(p.count * hw::bytes_per_element(p.dtype)));
    }
  }
  [[nodiscard]] const std::vector<std::byte*>& parts() const { return parts_; }

 private:
  static constexpr std::int64_t kLeast = 64;  // a part that only says where something begins
  static constexpr std::byte kFill{0x3c};     // 0.0115 in fp32, bf16 and (nearly) fp64
  static std::optional<std::size_t> ids_of(program::Function function) {
    switch (function) {
      case program::Function::embedding:
      case program::Function::embedding_backward: return 0;
      case program::Function::cross_entropy:
      case program::Function::cross_entropy_backward: return 1;
      default: return {};
    }
  }
  std::map<std::uint32_t, std::vector<std::byte>> memory_;
  std::vector<std::byte*> parts_;
};

void throw_cause(const Failure& failure) {
  if (failure.raised()) throw std::runtime_error(failure.causes().front());
}

}  // namespace

KernelTime measure(const KernelCase& kernel, const Effort& effort) {
  const Buffers buffers(kernel.call);
  const Training training{.vocab = 2, .seq_len = 1};
  host::kernels::Scratch scratch;
  const auto once = [&] {
    const Point begin = SteadyClock::now();
    host::kernels::run(kernel.call, buffers.parts(), {training, {}, 0}, scratch);
    return seconds(begin, SteadyClock::now());
  };
  return {kernel.shape, repeat(effort, once)};
}

LaunchTime measure_launch(const Effort& effort) {
  Failure failure;
  host::Stream stream(failure, "stream");
  Point begin, called, begun;
  const auto launch = [&] {
    begin = SteadyClock::now();
    stream.push([&begun] { begun = SteadyClock::now(); });
    called = SteadyClock::now();
    stream.drain();
  };
  LaunchTime result;
  result.call = repeat(effort, [&] {
    launch();
    return seconds(begin, called);
  });
  result.latency = repeat(effort, [&] {
    launch();
    return seconds(begin, begun);
  });
  return result;
}

Quartiles measure_collective(hw::CollectiveKind kind, hw::Dtype dtype, std::int64_t bytes, std::int32_t ranks, const Effort& effort) {
  Failure failure;
  host::Groups groups(failure, ranks);
  const program::CollectiveEntry entry{{kind, dtype, bytes, {ranks, 1}}, program::Communicator::shard, false, hw::name(kind), false};
  std::vector<std::vector<std::byte>> in(static_cast<std::size_t>(ranks)), out(in.size());
  std::vector<std::unique_ptr<host::Stream>> streams;
  std::vector<std::pair<host::Group*, std::int32_t>> places;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    in[i].assign(static_cast<std::size_t>(bytes), std::byte{0x3c});
    out[i].assign(static_cast<std::size_t>(bytes), std::byte{0});
    streams.push_back(std::make_unique<host::Stream>(failure, "rank " + std::to_string(rank)));
    places.push_back(groups.of(entry.communicator, ranks, rank));
  }
  std::uint32_t number = 0;
  Point begin, end;
  const auto once = [&] {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      std::byte* to = kind == hw::CollectiveKind::all_reduce ? in[i].data() : out[i].data();
      streams[i]->push([&, i, to, n = number] {
        places[i].first->run(entry, n, places[i].second, in[i].data(), to, [&] {
          if (i == 0) begin = SteadyClock::now();
        });
        if (i == 0) end = SteadyClock::now();
      });
    }
    ++number;
    for (const auto& stream : streams) stream->drain();
    return seconds(begin, end);
  };
  try {
    return repeat(effort, once);
  } catch (const Stopped&) {
    throw_cause(failure);
    throw;
  }
}

}  // namespace stepcast::real::bench
