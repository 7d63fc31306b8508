// Fluid sharing of a rank's resources (DRAM, multiprocessors, NVLink, NIC) between what runs at the same time.
// Max-min fair speeds x_f by progressive filling: all x_f rise together; f stops at its own limit or when a resource that it uses is full:
//     0 <= x_f <= limit_f,     sum over f of demand_{f,r} * x_f <= 1 for each resource r.
// demand_{f,r} is the share of resource r that f needs to run at full speed (x_f = 1). Test: tests/model/sharing_test.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace stepcast::sim {

enum class Resource : unsigned char { dram, processors, nvlink, nic, count_ };
inline constexpr std::size_t kResources = static_cast<std::size_t>(Resource::count_);

struct Flow {
  std::array<double, kResources> demand{};
  double limit = 1;  // the speed that it reaches alone
  double speed = 0;  // result
};

/// Fills in `speed` of each flow. A flow without demand runs at its limit.
void share(std::span<Flow> flows);

}  // namespace stepcast::sim
