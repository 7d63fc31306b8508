// HolisticTraceAnalysis' numbers by its own rules (facebookresearch/HolisticTraceAnalysis f4d0062), for readers who compare. Its whole microseconds, its filter of the last
// step and its kernel types differ from ours. Document: docs/diagnose.md, "HTA's numbers". Test: tests/model/profile_figures_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

/// Idle time between consecutive ops of one stream.
struct HtaIdle {
  Time host_wait{}, kernel_wait{}, other{};
};

struct HtaLaunches {
  std::int64_t rows = 0;
  Time sum_cpu{}, sum_gpu{}, sum_delay{}, max_delay{};
};

struct HtaMetrics {
  Time kernel_time{}, idle_time{}, compute_time{}, non_compute_time{};
  std::optional<double> comp_comm_overlap_pctg;
  std::int64_t gpu_rows = 0, duplicate_rows = 0;
  bool rounded_to_us = false;
  std::map<std::string, Time> sum_by_type;
  std::map<std::int64_t, HtaIdle> idle_by_stream;
  HtaLaunches launches;
};

/// Nothing where the profile has no row on a device.
std::optional<HtaMetrics> hta_metrics(const Profile& profile);

}  // namespace stepcast::trace::profile
