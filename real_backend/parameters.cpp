// See parameters.hpp.
#include "real_backend/parameters.hpp"

#include <algorithm>
#include <span>

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

void initialise(const program::Program& program, const DeviceMemory& memory, Device& device, const Training& training, std::int32_t rank) {
  const auto clear = [&](std::uint32_t buffer) {
    if (memory.at(buffer) != nullptr) device.write(memory.at(buffer), std::vector<std::byte>(static_cast<std::size_t>(program.buffers[buffer].bytes)));
  };
  clear(*program.metrics);
  std::uint32_t cleared = *program.metrics;
  for (const program::ParameterEntry& e : program.parameters) {
    if (e.master != cleared && e.begin == 0 && e.place == 0) clear(cleared = e.master);
  }
  for (const program::ParameterEntry& e : program.parameters) {
    on_rank(e, rank, [&](std::int64_t first, std::int64_t place, std::int64_t count) {
      host::with_type(e.dtype, [&]<class T>(Type<T>) {
        std::vector<T> values(static_cast<std::size_t>(count));
        for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = static_cast<T>(training.parameter(e.name, e.first + first + i));
        device.write(memory.at(e.master) + place * static_cast<std::int64_t>(sizeof(T)), std::as_bytes(std::span(values)));
      });
    });
  }
}

std::vector<Moments> moments(const program::Program& program, const DeviceMemory& memory, Device& device, std::int32_t rank) {
  std::vector<Moments> result(program.parameters.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const program::ParameterEntry& e = program.parameters[i];
    if (rank >= e.ranks) continue;
    on_rank(e, rank, [&](std::int64_t, std::int64_t place, std::int64_t count) {
      host::with_type(e.dtype, [&]<class T>(Type<T>) {
        std::vector<T> values(static_cast<std::size_t>(count));
        device.read(memory.at(e.master) + place * static_cast<std::int64_t>(sizeof(T)), std::as_writable_bytes(std::span(values)));
        for (const T element : values) {
          const auto value = static_cast<double>(element);
          result[i].sum += value;
          result[i].squares += value * value;
        }
      });
    });
  }
  return result;
}

}  // namespace stepcast::real
