// See parameters.hpp.
#include "real_backend/parameters.hpp"

#include <algorithm>
#include <cstring>

#include "real_backend/host/types.hpp"

namespace stepcast::real {
namespace {

/// Calls f(first element of the parameter, place in the master, count) for the run of a parameter's elements that lies on this rank.
template <class F>
void on_rank(const program::ParameterEntry& e, std::int32_t rank, F f) {
  const std::int64_t shard = rank % e.ranks;
  const std::int64_t first = std::max(std::int64_t{0}, shard * e.shard - e.begin), last = std::min(e.elements, (shard + 1) * e.shard - e.begin);
  if (first < last) f(first, e.place + (e.begin + first) % e.shard, last - first);
}

}  // namespace

void initialise(const program::Program& program, const DeviceMemory& memory, const Training& training, std::int32_t rank) {
  const auto clear = [&](std::uint32_t buffer) { std::memset(memory.at(buffer), 0, static_cast<std::size_t>(program.buffers[buffer].bytes)); };
  clear(*program.metrics);
  std::uint32_t cleared = *program.metrics;
  for (const program::ParameterEntry& e : program.parameters) {
    if (e.master != cleared && program.buffers[e.master].bytes > 0 && e.begin == 0 && e.place == 0) clear(cleared = e.master);
  }
  for (const program::ParameterEntry& e : program.parameters) {
    on_rank(e, rank, [&](std::int64_t first, std::int64_t place, std::int64_t count) {
      host::with_type(e.dtype, [&]<class T>(host::Type<T>) {
        T* to = reinterpret_cast<T*>(memory.at(e.master)) + place;
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(training.parameter(e.name, e.first + first + i));
      });
    });
  }
}

std::vector<Moments> moments(const program::Program& program, const DeviceMemory& memory, std::int32_t rank) {
  std::vector<Moments> result(program.parameters.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const program::ParameterEntry& e = program.parameters[i];
    if (rank >= e.ranks) continue;
    on_rank(e, rank, [&](std::int64_t, std::int64_t place, std::int64_t count) {
      host::with_type(e.dtype, [&]<class T>(host::Type<T>) {
        const T* from = reinterpret_cast<const T*>(memory.at(e.master)) + place;
        for (std::int64_t k = 0; k < count; ++k) {
          const auto value = static_cast<double>(from[k]);
          result[i].sum += value;
          result[i].squares += value * value;
        }
      });
    });
  }
  return result;
}

}  // namespace stepcast::real
