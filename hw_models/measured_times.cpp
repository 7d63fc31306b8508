// See measured_times.hpp.
#include "hw_models/measured_times.hpp"

#include <algorithm>

namespace stepcast::hw {

double shared_processors(const Profile& gpu) {
  const auto found = gpu.constants.find("shared_processors");
  return found == gpu.constants.end() ? 0 : found->second.value;
}

double crowding(double ranks, double processors) { return processors > 0 ? std::max(1.0, ranks / processors) : 1; }

double thread_share(double ranks, double processors) { return processors > 0 ? std::min(1.0, ranks / processors) : 0; }

std::optional<Seconds> measured_time(const Profile& gpu, const KernelShape& shape, std::string_view name, std::int32_t ranks) {
  const MeasuredKernel* best = nullptr;
  const auto rank_of = [&](const MeasuredKernel& row) { return (row.name.empty() ? 0 : 2) + (row.ranks == ranks ? 1 : 0); };
  for (const MeasuredKernel& row : gpu.kernels) {
    if (row.shape != shape || !(row.name.empty() || row.name == name)) continue;
    if (!best || rank_of(row) > rank_of(*best)) best = &row;
  }
  if (!best) return std::nullopt;
  const double processors = shared_processors(gpu);
  return Seconds(best->time.value) * (crowding(ranks, processors) / crowding(best->ranks, processors));
}

std::optional<Seconds> measured_time(const Profile& node, const CollectiveShape& shape) {
  for (const MeasuredCollective& row : node.collectives) {
    if (row.shape == shape) return Seconds(row.time.value);
  }
  return std::nullopt;
}

}  // namespace stepcast::hw
