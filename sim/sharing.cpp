// Progressive filling; see the header for the inequalities.
#include "sim/sharing.hpp"

#include <algorithm>

namespace stepcast::sim {

namespace {

/// The largest common speed that flows marked `growing` can have on resource r, given what the frozen flows take.
double common_speed(std::span<const Flow> flows, std::span<const bool> growing, std::size_t r) {
  double left = 1, demand = 0;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (growing[f]) demand += flows[f].demand[r];
    else left -= flows[f].demand[r] * flows[f].speed;
  }
  return demand > 0 ? std::max(left, 0.0) / demand : 1e300;
}

}  // namespace

void share(std::span<Flow> flows) {
  constexpr std::size_t kMost = 16;  // streams and communicators of one rank
  std::array<bool, kMost> growing{};
  const std::size_t count = std::min(flows.size(), kMost);
  std::fill_n(growing.begin(), count, true);
  for (std::size_t left = count; left > 0;) {
    double speed = 1e300;
    std::size_t full = kResources;  // the resource that stops the filling, or none: a flow reaches its limit
    for (std::size_t f = 0; f < count; ++f)
      if (growing[f]) speed = std::min(speed, flows[f].limit);
    for (std::size_t r = 0; r < kResources; ++r) {
      const double common = common_speed(flows.first(count), std::span(growing).first(count), r);
      if (common < speed) speed = common, full = r;
    }
    for (std::size_t f = 0; f < count; ++f) {
      if (!growing[f] || (full < kResources ? flows[f].demand[full] <= 0 : flows[f].limit > speed)) continue;
      flows[f].speed = speed;
      growing[f] = false;
      --left;
    }
  }
}

}  // namespace stepcast::sim
