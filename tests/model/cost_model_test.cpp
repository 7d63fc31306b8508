// The dispatcher: right formula, right shares. docs/models.md, "Contention", "Host", "Allocator costs".
#include "hw_models/cost_model.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "hw_models/collective.hpp"
#include "hw_models/gemm.hpp"
#include "hw_models/host.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"

using namespace stepcast;
using namespace stepcast::hw;

namespace {

CostModel model() {
  const Cluster cluster = make_cluster("dgx-a100", 4);
  return CostModel(gpu_profile(cluster.gpu), cluster);
}

KernelShape memory_kernel(std::int64_t bytes) { return {.kind = KernelKind::memory_bound, .read_bytes = bytes / 2, .write_bytes = bytes - bytes / 2}; }

}  // namespace

TEST_CASE("in training, collectives over nodes wait 20 us per further node for whoever is late; inside a node they do not") {
  const Cluster four = make_cluster("dgx-a100", 4), one = make_cluster("dgx-a100", 1);
  const CollectiveShape over{.kind = CollectiveKind::all_gather, .bytes = 1 << 30, .group = {8, 4}},
      inside{.kind = CollectiveKind::all_gather, .bytes = 1 << 30, .group = {8, 1}};
  CHECK(arrival_skew(over.group, Seconds(20e-6)).si() == doctest::Approx(60e-6));
  CHECK((CostModel(gpu_profile(four.gpu), four).collective(over).alone - collective_time(over, link_rates(four))).si() == doctest::Approx(60e-6));
  CHECK(CostModel(gpu_profile(one.gpu), one).collective(inside).alone == collective_time(inside, link_rates(one)));
}

TEST_CASE("A GEMM is priced by its formula, slowed by NCCL as one, and needs little DRAM") {
  const KernelShape shape{.kind = KernelKind::gemm, .m = 8192, .n = 4096, .k = 4096};
  const KernelPrice price = model().kernel(shape);
  CHECK(price.alone == gemm_time(shape, gemm_rates(model().gpu(), Dtype::bf16)));
  CHECK(price.nccl_slowdown == model().gpu().at("nccl_slowdown_gemm"));
  CHECK(price.dram_share == doctest::Approx(dram_bytes(shape).si() / (2039e9 * price.alone.si())));
  CHECK(price.dram_share < 0.1);
}

TEST_CASE("A large elementwise kernel needs its class's share of the DRAM bandwidth, a tiny one next to none") {
  CHECK(model().kernel(memory_kernel(4'000'000'000)).dram_share == doctest::Approx(0.88).epsilon(0.01));
  CHECK(model().kernel(memory_kernel(64)).dram_share < 0.001);
  CHECK(model().kernel(memory_kernel(1 << 20)).nccl_slowdown == model().gpu().at("nccl_slowdown_memory"));
}

TEST_CASE("Every kind of host work has a price, and only `none` is free") {
  CHECK(model().host(HostWork::none).si() == 0);
  for (std::size_t work = 1; work < kHostWorkKinds; ++work) CHECK(model().host(static_cast<HostWork>(work)).si() > 0);
  CHECK(model().host(HostWork::op_forward).in(microsecond) == doctest::Approx(8));
  CHECK(model().host(HostWork::views_unsharded).in(microsecond) == doctest::Approx(10.7));
}

TEST_CASE("Peaks by operand type; a type without matrix units is bad input") {
  CHECK(model().peak(Dtype::bf16).in(TFLOPS) == 312);
  CHECK(model().peak(Dtype::fp16).in(TFLOPS) == 312);
  CHECK(model().peak(Dtype::tf32).in(TFLOPS) == 156);
  CHECK_THROWS_AS((void)model().peak(Dtype::fp8), InputError);
}

TEST_CASE("Memory and allocator costs") {
  CHECK(model().device_memory().in(gibibyte) == doctest::Approx(79.2));
  CHECK(model().memory_outside_pool() < 3 * gibibyte);
  CHECK(model().allocator().flush.in(millisecond) == doctest::Approx(550));
  CHECK(model().allocator().device_malloc > model().allocator().device_free);
  CHECK(model().launch_latency().in(microsecond) == doctest::Approx(4));
}

TEST_CASE("Fixed-cost phases are not priced by hardware") { CHECK_THROWS_AS((void)model().kernel({.kind = KernelKind::fixed}), std::logic_error); }
