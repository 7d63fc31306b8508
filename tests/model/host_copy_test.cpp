// Copies over PCIe: the formula by hand, and the curve that its start was fitted to. docs/models.md, "Host copies".
#include "hw_models/host_copy.hpp"

#include <doctest/doctest.h>

#include "hw_models/cost_model.hpp"
#include "hw_models/host.hpp"
#include "hw_models/profiles.hpp"
#include "support/paths.hpp"
#include "tests/model/csv_table.hpp"

using namespace stepcast;
using namespace stepcast::hw;

namespace {

KernelPrice price(const char* node, bool pinned, std::int64_t bytes) {
  const Cluster cluster = make_cluster(node, 1);
  return CostModel(gpu_profile(cluster.gpu), cluster).kernel({.kind = KernelKind::copy_to_device, .write_bytes = bytes, .pinned = pinned});
}

}  // namespace

TEST_CASE("start + bytes / rate") {
  const HostCopyRates rates{Seconds(3e-6), BytesPerSecond(20e9), BytesPerSecond(5e9)};
  CHECK(host_copy_time(Bytes(0), true, rates).si() == doctest::Approx(3e-6));
  CHECK(host_copy_time(Bytes(1e9), true, rates).si() == doctest::Approx(0.05 + 3e-6));
  CHECK(host_copy_time(Bytes(1e9), false, rates).si() == doctest::Approx(0.2 + 3e-6));
}

TEST_CASE("a copy needs no multiprocessor, little DRAM, and NCCL does not slow it; PCIe 5 is twice as fast as PCIe 4") {
  const KernelPrice pinned = price("dgx-a100", true, 1'000'000'000), pageable = price("dgx-a100", false, 1'000'000'000);
  CHECK(pinned.alone.si() == doctest::Approx(1 / 26.1).epsilon(1e-3));
  CHECK(pageable.alone.si() == doctest::Approx(1 / 7.19).epsilon(1e-3));
  CHECK(pinned.processor_share == 0);
  CHECK(pinned.nccl_slowdown == 0);
  CHECK(pinned.dram_share < 0.02);
  CHECK(price("dgx-h100", true, 1'000'000'000).alone.si() == doctest::Approx(1 / 55.0).epsilon(1e-3));
}

TEST_CASE("ranks that copy at the same moment share their bridge; one GPU has it to itself; both directions cost alike") {
  const Cluster eight = make_cluster("dgx-a100", 1), one = make_cluster("dgx-a100", 1, {.gpus_per_node = 1});
  CHECK(bridge_sharers(eight) == 2);
  CHECK(bridge_sharers(one) == 1);
  const CostModel model(gpu_profile(eight.gpu), eight);
  const KernelPrice in = model.kernel({.kind = KernelKind::copy_to_device, .write_bytes = 1'000'000'000, .together = true});
  const KernelPrice back = model.kernel({.kind = KernelKind::copy_to_host, .read_bytes = 1'000'000'000, .together = true});
  CHECK(in.alone.si() == doctest::Approx(2 / 26.1).epsilon(1e-3));
  CHECK(in.alone == back.alone);
}

TEST_CASE("work on the host's processors costs each rank as much as all ranks of a node together") {
  const Cluster eight = make_cluster("dgx-a100", 1), one = make_cluster("dgx-a100", 1, {.gpus_per_node = 1});
  const CostModel of_eight(gpu_profile(eight.gpu), eight), of_one(gpu_profile(one.gpu), one);
  CHECK(of_eight.host(HostWork::cpu_adam).si() == doctest::Approx(8 * of_one.host(HostWork::cpu_adam).si()));
  CHECK(of_eight.host(HostWork::op_forward) == of_one.host(HostWork::op_forward));
}

TEST_CASE("work on the host's processors follows the node's memory: 262 us on 256 GB/s are 109 us on 614.4") {
  CHECK(memory_bound_host_time(Seconds(262e-6), BytesPerSecond(256e9), BytesPerSecond(614.4e9)).si() == doctest::Approx(109.17e-6).epsilon(1e-4));
  CHECK(host_time(node_profile("dgx-h100"), HostWork::cpu_adam).si() == doctest::Approx(109.17e-6).epsilon(1e-4));
  CHECK(host_time(node_profile("a100-400g"), HostWork::cpu_adam).si() == doctest::Approx(262e-6));  // not stated: that of the prices
}

TEST_CASE("the form fits the curve of a V100 over PCIe 3") {
  const auto rows =
      test::read_table(test::source_dir() + "/../shared/micro/memcpy_curve.csv", [](const test::Row& row) { return row.at("direction") == "H2D"; });
  if (!rows) {
    MESSAGE("skipped: no table of measured copies beside the source tree");
    return;
  }
  const HostCopyRates v100{Seconds(2.75e-6), BytesPerSecond(12.4e9), BytesPerSecond(1e9)};
  test::Errors errors;
  for (const test::Row& row : *rows) {
    const double bytes = test::number(row, "size_bytes");
    errors.add(host_copy_time(Bytes(bytes), true, v100).si(), bytes / (test::number(row, "GBps") * 1e9));
  }
  REQUIRE(errors.size() > 50);
  CHECK(errors.median() < 0.02);
  CHECK(errors.largest() < 0.2);
}
