// Time of NCCL collectives by size, group and links. docs/models.md, "Collectives". Test: tests/model/collective_test.cpp.
#pragma once

#include "hw_models/cost_model.hpp"
#include "hw_models/hardware.hpp"
#include "hw_models/kernel.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

/// Latency of one protocol: alpha = start + hops inside nodes (over NVLink, or PCIe where NVLink does not join the group) + hops over the network.
struct ProtocolLatency {
  Seconds start, nvlink_hop, network_hop, pcie_hop{};
};

/// What the formulas need to know of a node. Bandwidths are per direction.
struct LinkRates {
  BytesPerSecond all_gather_bus, reduce_scatter_bus, all_reduce_bus;  // per GPU inside a node, sustained
  BytesPerSecond network;                                             // of the whole node, sustained, after oversubscription
  double gpus_per_node = 8;
  double nvlink_reach = 8;    // GPUs that NVLink joins; a ring through more of a node's GPUs runs over PCIe
  BytesPerSecond pcie_bus{};  // per GPU, sustained by such a ring
  ProtocolLatency bulk, small;
  BytesPerSecond small_rate, small_network_rate;  // bus bandwidth of the low-latency protocol inside a node and between nodes
};
LinkRates link_rates(const Cluster& cluster);

/// What a ring over PCIe sustains per GPU: a share of a pinned copy's rate. Without peer access every byte crosses to host memory and back, and the GPUs behind one
/// host bridge share its link.
BytesPerSecond pcie_ring_rate(const Profile& node);
/// What all adapters of a node sustain: nics * min(nic_rate * efficiency, nic_limit) / oversubscription; nic_limit: of the transport, e.g. of sockets.
BytesPerSecond network_rate(const Profile& node);

/// Bytes that cross each link of the ring per byte of the big side: (N-1)/N, twice that for an all-reduce.
double ring_factor(CollectiveKind kind, std::int32_t ranks);

/// Ring bandwidth of a group: min(NVLink or PCIe bus, share of the node's network). A group that spans nodes with r members in each has r/g of the network of its
/// node (g GPUs), since its sisters on the other GPUs run the same collective at the same time.
BytesPerSecond ring_bandwidth(CollectiveKind kind, const GroupShape& group, const LinkRates& links);

/// t = min(alpha_bulk + f S / B, alpha_small + f S / B_small); alpha counts ring hops (N-1 of them, nodes-1 over the network; twice for an all-reduce), and tree
/// hops, 2 (r-1) and 2 log2(nodes), for a small all-reduce. B_small is at most B/2: the low-latency protocol sends a flag with every word.
Seconds collective_time(const CollectiveShape& shape, const LinkRates& links);

/// Time and the shares of NVLink and network that the collective needs to run at full speed.
CollectivePrice collective_price(const CollectiveShape& shape, const LinkRates& links);

}  // namespace stepcast::hw
