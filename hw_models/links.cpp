// See links.hpp.
#include "hw_models/links.hpp"

#include <algorithm>
#include <string>

namespace stepcast::hw {

BytesPerSecond pcie_ring_rate(const Profile& node) {
  const BytesPerSecond copy(node.at("pcie_rate"));
  if (node.at("peer_access") > 0) return copy * node.at("pcie_ring_efficiency");
  return copy * (node.at("host_bounce_efficiency") / node.at("gpus_per_host_bridge"));
}

BytesPerSecond network_rate(const Profile& node) {
  const double adapter = std::min(node.at("nic_rate") * node.at("network_efficiency"), node.at("nic_limit"));
  return BytesPerSecond(node.at("nics") * adapter / node.at("oversubscription"));
}

namespace {

ProtocolLatency protocol_latency(const Profile& node, const std::string& name) {
  const auto time = [&](const char* part) { return Seconds(node.at(name + part)); };
  return {time("_start"), time("_nvlink_hop"), time("_network_hop"), time("_pcie_hop")};
}

/// Of switches that reduce (NVLS): only where NVLink joins more than two GPUs.
void add_nvls(const Profile& node, LinkRates& links) {
  if (links.nvlink_reach <= 2 || !node.constants.contains("nvls_efficiency")) return;
  links.nvls_rate = BytesPerSecond(node.at("nvlink_rate")) * node.at("nvls_efficiency");
  links.nvls_latency = Seconds(node.at("nvls_latency"));
}

}  // namespace

LinkRates link_rates(const Cluster& cluster) {
  const Profile& node = cluster.node;
  const double reach = node.at("nvlink_reach");
  const auto rate = [&](const char* key) { return BytesPerSecond(node.at(key)); };
  const BytesPerSecond nvlink = reach > 1 ? rate("nvlink_rate") : BytesPerSecond{};
  LinkRates links{.all_gather_bus = nvlink * node.at("all_gather_efficiency"),
                  .reduce_scatter_bus = nvlink * node.at("reduce_scatter_efficiency"),
                  .all_reduce_bus = nvlink * node.at("all_reduce_efficiency"),
                  .network = network_rate(node),
                  .gpus_per_node = static_cast<double>(cluster.gpus_per_node),
                  .nvlink_reach = reach,
                  .pcie_bus = pcie_ring_rate(node),
                  .bulk = protocol_latency(node, "bulk"),
                  .middle = protocol_latency(node, "middle"),
                  .small = protocol_latency(node, "small"),
                  .small_rate = rate("small_rate"),
                  .small_network_rate = rate("small_network_rate"),
                  .middle_ring_rate = rate("middle_ring_rate"),
                  .middle_tree_rate = rate("middle_tree_rate"),
                  .middle_network_rate = rate("middle_network_rate"),
                  .tree_pair_rate = rate("tree_pair_rate"),
                  .tree_rate = rate("tree_rate")};
  add_nvls(node, links);
  return links;
}

}  // namespace stepcast::hw
