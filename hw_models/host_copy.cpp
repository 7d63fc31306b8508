// See host_copy.hpp.
#include "hw_models/host_copy.hpp"

namespace stepcast::hw {

HostCopyRates host_copy_rates(const Profile& node) {
  return {Seconds(node.at("host_copy_start")), BytesPerSecond(node.at("pcie_rate")), BytesPerSecond(node.at("host_copy_pageable_rate"))};
}

Seconds host_copy_time(Bytes bytes, bool pinned, const HostCopyRates& rates) { return rates.start + bytes / (pinned ? rates.pinned : rates.pageable); }

}  // namespace stepcast::hw
