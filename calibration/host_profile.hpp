// Profiles of a machine whose ranks share its processors, from the measurement file of `stepcast bench`: what was measured stands in them as it is, nothing is fitted.
// docs/calibration.md, "Shared processors". Test: tests/unit/host_profile_test.cpp.
#pragma once

#include <vector>

#include "calibration/measurement.hpp"
#include "hw_models/hardware.hpp"

namespace stepcast::calibration {

struct HostProfiles {
  hw::Profile gpu, node;
};

/// Kernels go into the table of `base.gpu`, collectives into that of `base.node`; launches, allocations and facts of the machine replace constants. Throws InputError if
/// two rows are of one operation, or none can be used.
HostProfiles host_profiles(HostProfiles base, const std::vector<MeasurementFile>& files);

}  // namespace stepcast::calibration
