// Copies between host memory and a device over PCIe. docs/models.md, "Host copies". Test: tests/model/host_copy_test.cpp.
#pragma once

#include "hw_models/hardware.hpp"
#include "hw_models/kernel.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

struct HostCopyRates {
  Seconds start;                    // of a copy, however small
  BytesPerSecond pinned, pageable;  // of large copies
};

HostCopyRates host_copy_rates(const Profile& node);

/// t = start + bytes / rate; pageable memory goes through a pinned buffer of the driver and is slower. Valid for one copy at a time in one direction.
Seconds host_copy_time(Bytes bytes, bool pinned, const HostCopyRates& rates);

/// GPUs of a node behind one host bridge, which share it when all copy at the same moment; the two directions do not share.
double bridge_sharers(const Cluster& cluster);

}  // namespace stepcast::hw
