// See host_copy.hpp.
#include "hw_models/host_copy.hpp"

#include <algorithm>

namespace stepcast::hw {

HostCopyRates host_copy_rates(const Profile& node) {
  return {Seconds(node.at("host_copy_start")), BytesPerSecond(node.at("pcie_rate")), BytesPerSecond(node.at("host_copy_pageable_rate"))};
}

Seconds host_copy_time(Bytes bytes, bool pinned, const HostCopyRates& rates) { return rates.start + bytes / (pinned ? rates.pinned : rates.pageable); }

double bridge_sharers(const Cluster& cluster) { return std::min(cluster.node.at("gpus_per_host_bridge"), static_cast<double>(cluster.gpus_per_node)); }

}  // namespace stepcast::hw
