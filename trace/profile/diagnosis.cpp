// Test: tests/model/profile_figures_test.cpp.
#include "trace/profile/diagnosis.hpp"

namespace stepcast::trace::profile {

RankDiagnosis diagnose(Profile profile) {
  RankDiagnosis rank;
  rank.profile = std::move(profile);
  rank.steps = steps_of(rank.profile);
  rank.devices = device_metrics(rank.profile);
  rank.host = host_metrics(rank.profile);
  rank.hta = hta_metrics(rank.profile);
  return rank;
}

}  // namespace stepcast::trace::profile
