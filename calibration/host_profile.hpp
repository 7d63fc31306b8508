// Profiles of a machine whose ranks share its processors, from the measurement file of `stepcast bench`: what was measured stands in them as it is.
// docs/calibration.md, "Shared processors". Test: tests/unit/host_profile_test.cpp.
#pragma once

#include <span>
#include <vector>

#include "calibration/measurement.hpp"
#include "hw_models/hardware.hpp"

namespace stepcast::calibration {

/// Host time of taking a segment from the system: fixed + per_gib x size.
struct SegmentTime {
  Seconds fixed, per_gib;
};

/// The line with the least sum of squared relative errors, neither part below zero; in proportion to the size where one was measured. Times are above zero, sizes differ.
SegmentTime segment_time(std::span<const Measurement> rows);

struct HostProfiles {
  hw::Profile gpu, node;
};

/// Times are means (medians where the file has none): what else runs on such a machine comes in bursts, which a step has its share of and the median batch has not.
/// Kernels go into the table of `base.gpu`, collectives into that of `base.node`; launches, allocations and facts of the machine replace constants (the
/// time of giving a segment back: the middle one of the sizes). Throws InputError if
/// two rows are of one operation, or none can be used.
HostProfiles host_profiles(HostProfiles base, const std::vector<MeasurementFile>& files);

}  // namespace stepcast::calibration
