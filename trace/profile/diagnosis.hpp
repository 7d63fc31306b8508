// Everything that is said about a set of traces: the numbers of each rank, of the ranks together, and the findings. Test: tests/model/profile_figures_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/profile/hta.hpp"
#include "trace/profile/metrics.hpp"

namespace stepcast::trace::profile {

struct RankDiagnosis {
  Profile profile;
  std::vector<Step> steps;
  std::vector<DeviceMetrics> devices;
  HostMetrics host;
  std::optional<HtaMetrics> hta;
};
RankDiagnosis diagnose(Profile profile);

}  // namespace stepcast::trace::profile
