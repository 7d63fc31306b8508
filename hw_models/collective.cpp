// See collective.hpp. Hop counts and hop latencies: NCCL's own tuning model (src/graph/tuning.cc); start and rates: fits to public nccl-tests logs.
#include "hw_models/collective.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace stepcast::hw {

namespace {

constexpr double kLowLatencyShare = 0.5;  // of NCCL's LL protocol: four bytes of data beside four of flag

struct Hops {
  double inside = 0, network = 0;
};

Hops ring_hops(CollectiveKind kind, const GroupShape& group) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double network = group.nodes - 1;
  return {.inside = passes * (group.ranks() - 1 - network), .network = passes * network};
}

/// NCCL uses double binary trees for small all-reduces, so that latency grows with the logarithm of the nodes.
Hops tree_hops(const GroupShape& group) { return {.inside = 2.0 * (group.ranks_per_node - 1), .network = 2.0 * std::log2(static_cast<double>(group.nodes))}; }

bool over_pcie(const GroupShape& group, const LinkRates& links) { return group.ranks_per_node > links.nvlink_reach; }

Seconds latency(const ProtocolLatency& protocol, const Hops& hops, bool pcie) {
  return protocol.start + (pcie ? protocol.pcie_hop : protocol.nvlink_hop) * hops.inside + protocol.network_hop * hops.network;
}

BytesPerSecond bus(CollectiveKind kind, const GroupShape& group, const LinkRates& links) {
  if (over_pcie(group, links)) return links.pcie_bus;
  switch (kind) {
    case CollectiveKind::all_gather: return links.all_gather_bus;
    case CollectiveKind::reduce_scatter: return links.reduce_scatter_bus;
    case CollectiveKind::all_reduce: return links.all_reduce_bus;
  }
  return links.all_gather_bus;
}

BytesPerSecond network_share(const GroupShape& group, const LinkRates& links) {
  return links.network * std::min(1.0, group.ranks_per_node / links.gpus_per_node);
}

}  // namespace

double ring_factor(CollectiveKind kind, std::int32_t ranks) {
  const double n = ranks;
  return (kind == CollectiveKind::all_reduce ? 2 : 1) * (n - 1) / n;
}

BytesPerSecond ring_bandwidth(CollectiveKind kind, const GroupShape& group, const LinkRates& links) {
  if (group.nodes == 1) return bus(kind, group, links);
  if (group.ranks_per_node == 1) return network_share(group, links);
  return std::min(bus(kind, group, links), network_share(group, links));
}

Seconds collective_time(const CollectiveShape& shape, const LinkRates& links) {
  if (shape.group.ranks() == 1) return links.small.start;
  const Bytes wire = Bytes(static_cast<double>(shape.bytes)) * ring_factor(shape.kind, shape.group.ranks());
  const Hops ring = ring_hops(shape.kind, shape.group);
  const Hops quick = shape.kind == CollectiveKind::all_reduce ? tree_hops(shape.group) : ring;
  const bool pcie = over_pcie(shape.group, links);
  const BytesPerSecond rate = ring_bandwidth(shape.kind, shape.group, links);
  const BytesPerSecond small_rate = std::min(shape.group.nodes > 1 ? links.small_network_rate : links.small_rate, rate * kLowLatencyShare);
  const Seconds bulk = latency(links.bulk, ring, pcie) + wire / rate;
  const Seconds small = latency(links.small, quick, pcie) + wire / small_rate;
  return std::min(bulk, small);
}

CollectivePrice collective_price(const CollectiveShape& shape, const LinkRates& links) {
  CollectivePrice price{.alone = collective_time(shape, links)};
  if (shape.group.ranks() == 1) return price;
  const BytesPerSecond rate = ring_bandwidth(shape.kind, shape.group, links);
  if (shape.group.ranks_per_node > 1) price.nvlink_share = rate / bus(shape.kind, shape.group, links);
  if (shape.group.nodes > 1) price.nic_share = rate / network_share(shape.group, links);
  return price;
}

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

}  // namespace

LinkRates link_rates(const Cluster& cluster) {
  const Profile& node = cluster.node;
  const double reach = node.at("nvlink_reach");
  const BytesPerSecond nvlink(reach > 1 ? node.at("nvlink_rate") : 0);
  return {.all_gather_bus = nvlink * node.at("all_gather_efficiency"),
          .reduce_scatter_bus = nvlink * node.at("reduce_scatter_efficiency"),
          .all_reduce_bus = nvlink * node.at("all_reduce_efficiency"),
          .network = network_rate(node),
          .gpus_per_node = static_cast<double>(cluster.gpus_per_node),
          .nvlink_reach = reach,
          .pcie_bus = pcie_ring_rate(node),
          .bulk = protocol_latency(node, "bulk"),
          .small = protocol_latency(node, "small"),
          .small_rate = BytesPerSecond(node.at("small_rate")),
          .small_network_rate = BytesPerSecond(node.at("small_network_rate"))};
}

}  // namespace stepcast::hw
