// docs/models.md, "Collectives": the formula against hand sums. Against measurements: microbenchmarks_test.cpp.
#include "hw_models/collective.hpp"

#include <doctest/doctest.h>

#include "hw_models/profiles.hpp"

using namespace stepcast;
using namespace stepcast::hw;

namespace {

/// 100 GB/s inside a node of 8 for all kinds, 50 GB/s between nodes; latencies in whole microseconds.
LinkRates round_links() {
  return {.all_gather_bus = 100 * GBps,
          .reduce_scatter_bus = 100 * GBps,
          .all_reduce_bus = 100 * GBps,
          .network = 50 * GBps,
          .gpus_per_node = 8,
          .bulk = {50 * microsecond, 3 * microsecond, 10 * microsecond},
          .middle = {20 * microsecond, 1 * microsecond, 5 * microsecond},  // as the small protocol, unless a test says otherwise
          .small = {20 * microsecond, 1 * microsecond, 5 * microsecond},
          .small_rate = 10 * GBps,
          .small_network_rate = 5 * GBps,
          .middle_ring_rate = 10 * GBps,
          .middle_tree_rate = 10 * GBps,
          .middle_network_rate = 5 * GBps,
          .tree_pair_rate = 1000 * GBps,
          .tree_rate = 1000 * GBps};
}

CollectiveShape shape(CollectiveKind kind, std::int64_t bytes, std::int32_t per_node, std::int32_t nodes) {
  return {.kind = kind, .bytes = bytes, .group = {.ranks_per_node = per_node, .nodes = nodes}};
}

}  // namespace

TEST_CASE("Ring factors: 7/8 for an all-gather over 8, 14/8 for an all-reduce, nothing for one rank") {
  CHECK(ring_factor(CollectiveKind::all_gather, 8) == 7.0 / 8);
  CHECK(ring_factor(CollectiveKind::reduce_scatter, 8) == 7.0 / 8);
  CHECK(ring_factor(CollectiveKind::all_reduce, 8) == 14.0 / 8);
  CHECK(ring_factor(CollectiveKind::all_gather, 1) == 0);
}

TEST_CASE("Inside a node: 7 hops and 7/8 of the bytes") {
  // 800 MB: 50 + 7 x 3 = 71 us, 700 MB at 100 GB/s = 7000 us
  CHECK(collective_time(shape(CollectiveKind::all_gather, 800'000'000, 8, 1), round_links()).in(microsecond) == doctest::Approx(7071));
  // all-reduce: 14 hops, 1400 MB: 50 + 42 + 14000
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 800'000'000, 8, 1), round_links()).in(microsecond) == doctest::Approx(14092));
}

TEST_CASE("Over 4 nodes: the node's network carries the ring once, 3 of 31 hops are network hops") {
  // 320 MB over 32: 310 MB at 50 GB/s = 6200 us; 50 + 28 x 3 + 3 x 10 = 164 us
  CHECK(collective_time(shape(CollectiveKind::reduce_scatter, 320'000'000, 8, 4), round_links()).in(microsecond) == doctest::Approx(6364));
}

TEST_CASE("One rank per node: eight sisters share the network, NVLink is idle") {
  // replica group of 4: B = 50/8 GB/s; all-reduce of 100 MB: 2 x 3/4 x 100 MB / 6.25 GB/s = 24,000 us; 50 + 6 x 10 = 110 us
  const CollectiveShape replica = shape(CollectiveKind::all_reduce, 100'000'000, 1, 4);
  CHECK(collective_time(replica, round_links()).in(microsecond) == doctest::Approx(24110));
  CHECK(collective_price(replica, round_links()).nvlink_share == 0);
  CHECK(collective_price(replica, round_links()).nic_share == 1);
}

TEST_CASE("Small messages take the low-latency protocol; trees make an all-reduce logarithmic in nodes") {
  // 8 bytes over 8 ranks: 20 + 14 x 1 us; over 16 nodes: 20 + 14 + 2 x 4 x 5 = 74 us
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 8, 8, 1), round_links()).in(microsecond) == doctest::Approx(34).epsilon(1e-3));
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 8, 8, 16), round_links()).in(microsecond) == doctest::Approx(74).epsilon(1e-3));
  // an all-gather has no tree: 127 hops, 15 of them over the network: 20 + 112 + 75
  CHECK(collective_time(shape(CollectiveKind::all_gather, 1024, 8, 16), round_links()).in(microsecond) == doctest::Approx(207.2).epsilon(1e-3));
}

TEST_CASE("Middle sizes take the protocol between: gathers at the ring's rate, all-reduces at the tree's") {
  LinkRates links = round_links();
  links.middle = {20 * microsecond, 2 * microsecond, 5 * microsecond};
  links.middle_ring_rate = 35 * GBps;
  links.middle_tree_rate = 70 * GBps;
  // 800 KB: 700 KB at 35 GB/s = 20 us, 20 + 7 x 2; bulk: 50 + 21 + 7 = 78, small: 20 + 7 + 70 = 97
  CHECK(collective_time(shape(CollectiveKind::all_gather, 800'000, 8, 1), links).in(microsecond) == doctest::Approx(54));
  // all-reduce: 1400 KB at 70 GB/s = 20 us, 20 + 14 x 2
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 800'000, 8, 1), links).in(microsecond) == doctest::Approx(68));
}

TEST_CASE("On two nodes a tree sends each byte once over the network, a ring 2 (N-1)/N times") {
  // 16 ranks: ring factor 15/8; tree: 50 x 15/8 = 93.75 GB/s of bus bandwidth, below NVLink's 100
  const GroupShape two{.ranks_per_node = 8, .nodes = 2}, four{.ranks_per_node = 8, .nodes = 4};
  CHECK(tree_bandwidth(two, round_links()).in(GBps) == doctest::Approx(93.75));
  // on four nodes twice: 50 x 31/16 / 2 = 48.4 GB/s, and the ring's 50 win
  CHECK(tree_bandwidth(four, round_links()).in(GBps) == doctest::Approx(48.4375));
  // 800 MB: 1500 MB at 93.75 GB/s = 16,000 us; 50 + 14 x 3 + 2 x 10
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 800'000'000, 8, 2), round_links()).in(microsecond) == doctest::Approx(16112));
  // 320 MB over four: 620 MB at 50 GB/s = 12,400 us; 50 + 56 x 3 + 6 x 10; the tree's 12,800 are longer, though its 14 and 4 hops are fewer
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 320'000'000, 8, 4), round_links()).in(microsecond) == doctest::Approx(12678));
  LinkRates capped = round_links();
  capped.tree_pair_rate = 40 * GBps;  // the ring again: 1500 MB at 50 GB/s, 50 + 28 x 3 + 2 x 10
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 800'000'000, 8, 2), capped).in(microsecond) == doctest::Approx(30154));
}

TEST_CASE("Over many nodes the tree's few hops win for middle sizes, the ring's rate for large ones") {
  // 16 nodes, 128 ranks: ring 50 + 224 x 3 + 30 x 10 = 1022 us at 50 GB/s; tree 50 + 14 x 3 + 8 x 10 = 172 us at 50 x 127/128 = 49.6 GB/s
  LinkRates links = round_links();
  links.tree_rate = 25 * GBps;  // crosses at 850 us x 50 GB/s = 42.5 MB on the wire
  const auto wire = [](double megabytes) { return static_cast<std::int64_t>(megabytes * 1e6 * 64 / 127); };
  CHECK(collective_time(shape(CollectiveKind::all_reduce, wire(25), 8, 16), links).in(microsecond) == doctest::Approx(172 + 1000));
  CHECK(collective_time(shape(CollectiveKind::all_reduce, wire(100), 8, 16), links).in(microsecond) == doctest::Approx(1022 + 2000));
}

TEST_CASE("On every node profile: time never falls with size, and faster adapters never make a collective slower") {
  for (const std::string& name : node_names())
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce})
      for (const GroupShape& group : {GroupShape{2, 1}, GroupShape{4, 1}, GroupShape{1, 2}, GroupShape{2, 2}, GroupShape{1, 16}, GroupShape{2, 16}}) {
        CAPTURE(name);
        CAPTURE(group.ranks_per_node);
        CAPTURE(group.nodes);
        if (group.nodes > 1 && node_profile(name).at("nics") < 1) continue;
        const Cluster plain = make_cluster(name, group.nodes);
        const BytesPerSecond faster(plain.node.at("nic_rate") * 1.3);
        const LinkRates links = link_rates(plain), wide = link_rates(make_cluster(name, group.nodes, {.nic_rate = faster}));
        Seconds last;
        for (std::int64_t bytes = 8; bytes < 8'000'000'000; bytes *= 3) {
          const CollectiveShape now{.kind = kind, .bytes = bytes, .group = group};
          CHECK(collective_time(now, links) >= last);
          CHECK(collective_time(now, wide) <= collective_time(now, links));
          last = collective_time(now, links);
        }
      }
}

TEST_CASE("A switch that reduces moves each byte of an all-reduce once, for one latency; gathers stay rings") {
  LinkRates links = round_links();
  links.nvls_rate = 80 * GBps;
  links.nvls_latency = 25 * microsecond;
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 800'000'000, 8, 1), links).in(microsecond) == doctest::Approx(50 + 25 + 10'000));
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 800'000'000, 4, 1), links).in(microsecond) == doctest::Approx(50 + 25 + 10'000));
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 800'000'000, 2, 1), links).in(microsecond) == doctest::Approx(50 + 6 + 8'000));  // two ranks: a ring
  CHECK(collective_time(shape(CollectiveKind::all_gather, 800'000'000, 8, 1), links).in(microsecond) == doctest::Approx(7071));
  links.nvlink_reach = 2;
  links.pcie_bus = 20 * GBps;
  CHECK(collective_time(shape(CollectiveKind::all_reduce, 800'000'000, 8, 1), links).in(microsecond) == doctest::Approx(50 + 70'000));  // over PCIe
}

TEST_CASE("A hybrid group's collectives ask for all of what they share") {
  // shards over two nodes and replicas over two pairs of nodes: each alone fills the adapters, so that both at once take twice as long
  const CollectivePrice shard = collective_price(shape(CollectiveKind::all_gather, 100'000'000, 8, 2), round_links());
  const CollectivePrice replica = collective_price(shape(CollectiveKind::all_reduce, 100'000'000, 1, 4), round_links());
  CHECK(shard.nic_share == 1);
  CHECK(replica.nic_share == 1);
  // shards inside the node use NVLink alone
  CHECK(collective_price(shape(CollectiveKind::all_gather, 100'000'000, 8, 1), round_links()).nic_share == 0);
}

TEST_CASE("Time never falls with size, and shares name the bottleneck") {
  Seconds last;
  for (std::int64_t bytes = 1; bytes < 4'000'000'000; bytes *= 2) {
    const Seconds time = collective_time(shape(CollectiveKind::all_gather, bytes, 8, 2), round_links());
    CHECK(time >= last);
    last = time;
  }
  const CollectivePrice inside = collective_price(shape(CollectiveKind::all_gather, 1 << 20, 8, 1), round_links());
  CHECK(inside.nvlink_share == 1);
  CHECK(inside.nic_share == 0);
  const CollectivePrice between = collective_price(shape(CollectiveKind::all_gather, 1 << 20, 8, 2), round_links());
  CHECK(between.nvlink_share == 0.5);
  CHECK(between.nic_share == 1);
}

TEST_CASE("A 386 MiB block over 4 DGX A100: 392.1 MB at 0.93 x 200 GB/s + 187 us = 2.30 ms") {
  // 404,766,720 B x 31/32 = 392.12 MB at 186 GB/s = 2.108 ms; 50 + 28 x 3.4 + 3 x 14 = 187.2 us
  const LinkRates links = link_rates(make_cluster("dgx-a100", 4));
  CHECK(collective_time(shape(CollectiveKind::all_gather, 404'766'720, 8, 4), links).in(millisecond) == doctest::Approx(2.295).epsilon(1e-3));
}

TEST_CASE("A ring through more GPUs than NVLink joins runs over PCIe") {
  LinkRates links = round_links();
  links.nvlink_reach = 2;
  links.pcie_bus = 20 * GBps;
  links.bulk.pcie_hop = 6 * microsecond;
  // over a bridge: 800 MB x 1/2 at 100 GB/s = 4000 us, 50 + 3; over PCIe: 700 MB at 20 GB/s = 35,000 us, 50 + 7 x 6
  CHECK(collective_time(shape(CollectiveKind::all_gather, 800'000'000, 2, 1), links).in(microsecond) == doctest::Approx(4053));
  CHECK(collective_time(shape(CollectiveKind::all_gather, 800'000'000, 8, 1), links).in(microsecond) == doctest::Approx(35092));
  // over 4 nodes PCIe is slower than the 50 GB/s between them: 310 MB at 20 GB/s = 15,500 us, 50 + 28 x 6 + 3 x 10
  CHECK(collective_time(shape(CollectiveKind::all_gather, 320'000'000, 8, 4), links).in(microsecond) == doctest::Approx(15748));
}

TEST_CASE("PCIe rings: 0.8 of a copy with peer access; through host memory 0.4, shared by the GPUs behind a bridge") {
  CHECK(pcie_ring_rate(make_cluster("l40s", 1).node).in(GBps) == doctest::Approx(0.8 * 26.1));
  CHECK(pcie_ring_rate(make_cluster("l40s", 1, {.peer_access = false}).node).in(GBps) == doctest::Approx(0.4 * 26.1 / 2));
  CHECK(pcie_ring_rate(make_cluster("rtx-4090", 1).node).in(GBps) == doctest::Approx(0.4 * 26.1));
}

TEST_CASE("Sockets in place of RDMA: an adapter of 200 Gb/s carries 3.2 GB/s, and a large collective takes 5 to 8 times as long") {
  const Cluster rdma = make_cluster("dgx-a100", 4), tcp = make_cluster("dgx-a100", 4, {.fabric = Fabric::tcp});
  CHECK(network_rate(rdma.node).in(GBps) == doctest::Approx(8 * 25 * 0.93));
  CHECK(network_rate(tcp.node).in(GBps) == doctest::Approx(8 * 3.2));
  // a link that is slower than the sockets is not limited by them: 8 x 10 Gb/s at 0.9
  CHECK(network_rate(make_cluster("dgx-a100", 4, {.nic_rate = BytesPerSecond(1.25e9), .fabric = Fabric::tcp}).node).in(GBps) ==
        doctest::Approx(8 * 1.25 * 0.9));
  const CollectiveShape block = shape(CollectiveKind::all_gather, 404'766'720, 8, 4);
  const double ratio = collective_time(block, link_rates(tcp)) / collective_time(block, link_rates(rdma));
  CHECK(ratio > 5);
  CHECK(ratio < 8);
}

TEST_CASE("The low-latency protocol carries at most half of what the ring does") {
  LinkRates links = round_links();
  links.network = 4 * GBps;
  links.middle.start = 1 * millisecond;
  // 4000 B over 2 x 1: 2000 B at half of 4/8 GB/s = 8 us; 20 + 5 us
  CHECK(collective_time(shape(CollectiveKind::all_gather, 4000, 1, 2), links).in(microsecond) == doctest::Approx(33));
}

TEST_CASE("Oversubscription divides the network only") {
  const LinkRates links = link_rates(make_cluster("dgx-a100", 4, {.oversubscription = 4.0}));
  CHECK(links.network.in(GBps) == doctest::Approx(46.5));
  CHECK(links.all_reduce_bus.in(GBps) == doctest::Approx(232.5));
}
