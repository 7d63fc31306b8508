// See collective.hpp. Hop counts and hop latencies: NCCL's own tuning model (src/graph/tuning.cc); start and rates: fits to public nccl-tests logs.
#include "hw_models/collective.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast::hw {

namespace {

struct Hops {
  double nvlink = 0, network = 0;
};

Hops ring_hops(CollectiveKind kind, const GroupShape& group) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double network = group.nodes - 1;
  return {.nvlink = passes * (group.ranks() - 1 - network), .network = passes * network};
}

/// NCCL uses double binary trees for small all-reduces, so that latency grows with the logarithm of the nodes.
Hops tree_hops(const GroupShape& group) { return {.nvlink = 2.0 * (group.ranks_per_node - 1), .network = 2.0 * std::log2(static_cast<double>(group.nodes))}; }

Seconds latency(const ProtocolLatency& protocol, const Hops& hops) {
  return protocol.start + protocol.nvlink_hop * hops.nvlink + protocol.network_hop * hops.network;
}

BytesPerSecond bus(CollectiveKind kind, const LinkRates& links) {
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
  if (group.nodes == 1) return bus(kind, links);
  if (group.ranks_per_node == 1) return network_share(group, links);
  return std::min(bus(kind, links), network_share(group, links));
}

Seconds collective_time(const CollectiveShape& shape, const LinkRates& links) {
  if (shape.group.ranks() == 1) return links.small.start;
  const Bytes wire = Bytes(static_cast<double>(shape.bytes)) * ring_factor(shape.kind, shape.group.ranks());
  const Hops ring = ring_hops(shape.kind, shape.group);
  const Hops quick = shape.kind == CollectiveKind::all_reduce ? tree_hops(shape.group) : ring;
  const Seconds bulk = latency(links.bulk, ring) + wire / ring_bandwidth(shape.kind, shape.group, links);
  const Seconds small = latency(links.small, quick) + wire / (shape.group.nodes > 1 ? links.small_network_rate : links.small_rate);
  return std::min(bulk, small);
}

CollectivePrice collective_price(const CollectiveShape& shape, const LinkRates& links) {
  CollectivePrice price{.alone = collective_time(shape, links)};
  if (shape.group.ranks() == 1) return price;
  const BytesPerSecond rate = ring_bandwidth(shape.kind, shape.group, links);
  if (shape.group.ranks_per_node > 1) price.nvlink_share = rate / bus(shape.kind, links);
  if (shape.group.nodes > 1) price.nic_share = rate / network_share(shape.group, links);
  return price;
}

LinkRates link_rates(const Cluster& cluster) {
  const Profile& node = cluster.node;
  const BytesPerSecond nvlink(node.at("nvlink_rate"));
  return {.all_gather_bus = nvlink * node.at("all_gather_efficiency"),
          .reduce_scatter_bus = nvlink * node.at("reduce_scatter_efficiency"),
          .all_reduce_bus = nvlink * node.at("all_reduce_efficiency"),
          .network = BytesPerSecond(node.at("nics") * node.at("nic_rate") * node.at("network_efficiency") / node.at("oversubscription")),
          .gpus_per_node = static_cast<double>(cluster.gpus_per_node),
          .bulk = {Seconds(node.at("bulk_start")), Seconds(node.at("bulk_nvlink_hop")), Seconds(node.at("bulk_network_hop"))},
          .small = {Seconds(node.at("small_start")), Seconds(node.at("small_nvlink_hop")), Seconds(node.at("small_network_hop"))},
          .small_rate = BytesPerSecond(node.at("small_rate")),
          .small_network_rate = BytesPerSecond(node.at("small_network_rate"))};
}

}  // namespace stepcast::hw
