// Time of NCCL collectives by size, group and links. docs/models.md, "Collectives". Tests: tests/model/collective_test.cpp, collective_logs_test.cpp.
#pragma once

#include "hw_models/cost_model.hpp"
#include "hw_models/kernel.hpp"
#include "hw_models/links.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

/// Bytes that cross each link of the ring per byte of the big side: (N-1)/N, twice that for an all-reduce. "Bus bandwidth" is this times size over time.
double ring_factor(CollectiveKind kind, std::int32_t ranks);

/// Bus bandwidth of a ring: min(NVLink or PCIe bus, share of the node's network). A group that spans nodes with r members in each has r/g of the network of its
/// node (g GPUs), since its sisters on the other GPUs run the same collective at the same time.
BytesPerSecond ring_bandwidth(CollectiveKind kind, const GroupShape& group, const LinkRates& links);

/// Bus bandwidth of a tree over nodes, for an all-reduce: every byte goes up and down once, so that a node sends each byte once on two nodes, and twice on more.
BytesPerSecond tree_bandwidth(const GroupShape& group, const LinkRates& links);

/// t = min over NCCL's protocols (bulk: Simple, middle: LL128, small: LL) of alpha + f S / B. Rings: N-1 hops (twice for an all-reduce), nodes-1 of them over the
/// network. All-reduces over nodes take trees, 2 (r-1) and 2 log2(nodes) hops, large ones where they are faster than the ring. With NVLS (a reducing switch) an
/// all-reduce pays one latency for all hops inside a node and moves each byte once. The small rate is at most B/2: half of what it sends are flags.
Seconds collective_time(const CollectiveShape& shape, const LinkRates& links);

/// What a collective over nodes takes in training beyond the benchmarks of NCCL, where all ranks start together and nothing else runs: `per_node` for each node after the first, as the
/// ring waits for whoever is late. Seen from 16 to 512 GPUs.
Seconds arrival_skew(const GroupShape& group, Seconds per_node);

/// Time and the shares of NVLink and network that the collective needs to run at full speed.
CollectivePrice collective_price(const CollectiveShape& shape, const LinkRates& links);

}  // namespace stepcast::hw
