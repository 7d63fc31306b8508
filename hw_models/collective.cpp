// See collective.hpp. Hop counts and hop latencies: NCCL's own tuning model (src/graph/tuning.cc); start and rates: fits to public nccl-tests logs.
#include "hw_models/collective.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepcast::hw {

namespace {

constexpr double kLowLatencyShare = 0.5;  // of NCCL's LL protocol: four bytes of data beside four of flag
constexpr BytesPerSecond kNoLimit(std::numeric_limits<double>::infinity());

struct Hops {
  double inside = 0, network = 0;
};

Hops ring_hops(CollectiveKind kind, const GroupShape& group) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const double network = group.nodes - 1;
  return {.inside = passes * (group.ranks() - 1 - network), .network = passes * network};
}

/// NCCL uses double binary trees over nodes and chains inside, so that latency grows with the logarithm of the nodes.
Hops tree_hops(const GroupShape& group) { return {.inside = 2.0 * (group.ranks_per_node - 1), .network = 2.0 * std::log2(static_cast<double>(group.nodes))}; }

bool over_pcie(const GroupShape& group, const LinkRates& links) { return group.ranks_per_node > links.nvlink_reach; }

bool by_switch(CollectiveKind kind, const GroupShape& group, const LinkRates& links) {
  return kind == CollectiveKind::all_reduce && links.nvls_rate.si() > 0 && group.ranks_per_node > 2 && !over_pcie(group, links);
}

/// What the links inside a node give a group, as bus bandwidth.
BytesPerSecond inside_bandwidth(CollectiveKind kind, const GroupShape& group, const LinkRates& links) {
  if (group.ranks_per_node == 1) return kNoLimit;
  if (over_pcie(group, links)) return links.pcie_bus;
  switch (kind) {
    case CollectiveKind::all_gather: return links.all_gather_bus;
    case CollectiveKind::reduce_scatter: return links.reduce_scatter_bus;
    case CollectiveKind::all_reduce: return links.all_reduce_bus;
  }
  return links.all_gather_bus;
}

BytesPerSecond switch_bandwidth(const GroupShape& group, const LinkRates& links) {
  return links.nvls_rate * ring_factor(CollectiveKind::all_reduce, group.ranks());
}

BytesPerSecond network_share(const GroupShape& group, const LinkRates& links) {
  if (group.nodes == 1) return kNoLimit;
  return links.network * std::min(1.0, group.ranks_per_node / links.gpus_per_node);
}

/// What the network gives a tree: a node sends S on two nodes, 2 S on more, where a ring sends 2 (N-1)/N S.
BytesPerSecond tree_network(const GroupShape& group, const LinkRates& links) {
  return network_share(group, links) * (ring_factor(CollectiveKind::all_reduce, group.ranks()) / (group.nodes == 2 ? 1 : 2));
}

BytesPerSecond tree_inside(const GroupShape& group, const LinkRates& links) {
  const CollectiveKind kind = CollectiveKind::all_reduce;
  const BytesPerSecond inside = by_switch(kind, group, links) ? switch_bandwidth(group, links) : inside_bandwidth(kind, group, links);
  return std::min(inside, group.nodes == 2 ? links.tree_pair_rate : links.tree_rate);
}

class Latency {
 public:
  Latency(const CollectiveShape& shape, const LinkRates& links)
      : links_(links), pcie_(over_pcie(shape.group, links)), switch_(by_switch(shape.kind, shape.group, links)) {}
  [[nodiscard]] Seconds of(const ProtocolLatency& protocol, const Hops& hops) const { return of(protocol, hops, protocol); }
  /// `inside`: the protocol whose hops inside a node count.
  [[nodiscard]] Seconds of(const ProtocolLatency& protocol, const Hops& hops, const ProtocolLatency& inside) const {
    const Seconds in_node = switch_ ? links_.nvls_latency : (pcie_ ? inside.pcie_hop : inside.nvlink_hop) * hops.inside;
    return protocol.start + in_node + protocol.network_hop * hops.network;
  }

 private:
  const LinkRates& links_;
  bool pcie_, switch_;
};

/// How large messages go: bandwidths of the links as bus bandwidth, and hops.
struct Way {
  BytesPerSecond inside, network;
  Hops hops;
  [[nodiscard]] BytesPerSecond rate() const { return std::min(inside, network); }
};

Seconds bulk_time(const Way& way, const CollectiveShape& shape, Bytes wire, const LinkRates& links) {
  return Latency(shape, links).of(links.bulk, way.hops) + wire / way.rate();
}

Way ring_way(const CollectiveShape& shape, const LinkRates& links) {
  const bool by_nvls = shape.group.nodes == 1 && by_switch(shape.kind, shape.group, links);
  return {by_nvls ? switch_bandwidth(shape.group, links) : inside_bandwidth(shape.kind, shape.group, links), network_share(shape.group, links),
          ring_hops(shape.kind, shape.group)};
}

Way large_way(const CollectiveShape& shape, Bytes wire, const LinkRates& links) {
  const Way ring = ring_way(shape, links);
  if (shape.kind != CollectiveKind::all_reduce || shape.group.nodes == 1) return ring;
  const Way tree{tree_inside(shape.group, links), tree_network(shape.group, links), tree_hops(shape.group)};
  return bulk_time(tree, shape, wire, links) < bulk_time(ring, shape, wire, links) ? tree : ring;
}

Bytes wire_bytes(const CollectiveShape& shape) { return Bytes(static_cast<double>(shape.bytes)) * ring_factor(shape.kind, shape.group.ranks()); }

Seconds ring_protocols(const CollectiveShape& shape, Bytes wire, BytesPerSecond rate, const LinkRates& links) {
  const Latency latency(shape, links);
  const Hops hops = ring_hops(shape.kind, shape.group);
  const BytesPerSecond middle = shape.kind == CollectiveKind::all_reduce ? links.middle_tree_rate : links.middle_ring_rate;
  const BytesPerSecond small = shape.group.nodes > 1 ? links.small_network_rate : links.small_rate;
  return std::min(latency.of(links.middle, hops) + wire / std::min(rate, middle),
                  latency.of(links.small, hops) + wire / std::min(rate * kLowLatencyShare, small));
}

/// Trees of middle size move data in the bulk protocol's steps inside a node.
Seconds tree_protocols(const CollectiveShape& shape, Bytes wire, const LinkRates& links) {
  const Latency latency(shape, links);
  const Hops hops = tree_hops(shape.group);
  const BytesPerSecond rate = tree_bandwidth(shape.group, links);
  return std::min(latency.of(links.middle, hops, links.bulk) + wire / std::min(rate, links.middle_network_rate),
                  latency.of(links.small, hops) + wire / std::min(rate * kLowLatencyShare, links.small_network_rate));
}

}  // namespace

double ring_factor(CollectiveKind kind, std::int32_t ranks) {
  const double n = ranks;
  return (kind == CollectiveKind::all_reduce ? 2 : 1) * (n - 1) / n;
}

BytesPerSecond ring_bandwidth(CollectiveKind kind, const GroupShape& group, const LinkRates& links) {
  return std::min(inside_bandwidth(kind, group, links), network_share(group, links));
}

BytesPerSecond tree_bandwidth(const GroupShape& group, const LinkRates& links) { return std::min(tree_inside(group, links), tree_network(group, links)); }

Seconds collective_time(const CollectiveShape& shape, const LinkRates& links) {
  if (shape.group.ranks() == 1) return links.small.start;
  const Bytes wire = wire_bytes(shape);
  const Way way = large_way(shape, wire, links);
  const Seconds bulk = bulk_time(way, shape, wire, links);
  const bool tree = shape.kind == CollectiveKind::all_reduce && shape.group.nodes > 1;
  return std::min(bulk, tree ? tree_protocols(shape, wire, links) : ring_protocols(shape, wire, way.rate(), links));
}

Seconds arrival_skew(const GroupShape& group, Seconds per_node) { return per_node * static_cast<double>(group.nodes - 1); }

CollectivePrice collective_price(const CollectiveShape& shape, const LinkRates& links) {
  CollectivePrice price{.alone = collective_time(shape, links)};
  if (shape.group.ranks() == 1) return price;
  const Way way = large_way(shape, wire_bytes(shape), links);
  if (shape.group.ranks_per_node > 1) price.nvlink_share = way.rate() / way.inside;
  if (shape.group.nodes > 1) price.nic_share = way.rate() / way.network;
  return price;
}

}  // namespace stepcast::hw
