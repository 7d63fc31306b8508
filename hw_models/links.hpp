// What a node's links sustain, from its profile. docs/hardware.md, "Links". Test: tests/model/collective_test.cpp.
#pragma once

#include "hw_models/hardware.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

/// Latency of one protocol: alpha = start + hops inside nodes (over NVLink, or PCIe where NVLink does not join the group) + hops over the network.
struct ProtocolLatency {
  Seconds start, nvlink_hop, network_hop, pcie_hop{};
};

/// What the formulas of collectives need to know of a node. Bandwidths are per direction, "bus" is the bus bandwidth of nccl-tests.
struct LinkRates {
  BytesPerSecond all_gather_bus, reduce_scatter_bus, all_reduce_bus;  // of rings over NVLink, per GPU, sustained
  BytesPerSecond network;                                             // of the whole node, sustained, after oversubscription
  double gpus_per_node = 8;
  double nvlink_reach = 8;    // GPUs that NVLink joins; a ring through more of a node's GPUs runs over PCIe
  BytesPerSecond pcie_bus{};  // per GPU, sustained by such a ring
  ProtocolLatency bulk, middle, small;
  BytesPerSecond small_rate, small_network_rate;      // bus bandwidth of the small protocol inside a node and between nodes
  BytesPerSecond middle_ring_rate, middle_tree_rate;  // of the middle one: gathers and scatters; all-reduces inside a node
  BytesPerSecond middle_network_rate;                 // all-reduces over nodes
  BytesPerSecond tree_pair_rate, tree_rate;           // most that trees over two nodes, and over more, reach
  BytesPerSecond nvls_rate{};                         // bytes of a tensor per second that the switch reduces; 0: it can't
  Seconds nvls_latency{};
};
LinkRates link_rates(const Cluster& cluster);

/// What a ring over PCIe sustains per GPU: a share of a pinned copy's rate. Without peer access every byte crosses to host memory and back, and the GPUs behind
/// one host bridge share its link.
BytesPerSecond pcie_ring_rate(const Profile& node);

/// What all adapters of a node sustain: nics * min(nic_rate * efficiency, nic_limit) / oversubscription; nic_limit: of the transport, e.g. of sockets.
BytesPerSecond network_rate(const Profile& node);

}  // namespace stepcast::hw
