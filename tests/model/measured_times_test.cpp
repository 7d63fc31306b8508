// Tables of measured times before formulas, and ranks that share processors. docs/models.md, "Shared processors".
#include "hw_models/measured_times.hpp"

#include <doctest/doctest.h>

#include "hw_models/cost_model.hpp"
#include "hw_models/gemm.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profile_text.hpp"
#include "hw_models/profiles.hpp"

using namespace stepcast;
using namespace stepcast::hw;

namespace {

constexpr KernelShape kProduct{.kind = KernelKind::gemm, .dtype = Dtype::fp32, .m = 256, .n = 512, .k = 128};
constexpr KernelShape kRows{.dtype = Dtype::fp32, .memory = MemoryClass::normalization, .read_bytes = 4096, .write_bytes = 0};
constexpr CollectiveShape kGather{.dtype = Dtype::fp32, .bytes = 1 << 20, .group = {4, 1}};

Constant time(double seconds) { return {seconds, "planted", Origin::measured, {}}; }

/// Two processors.
Profile gpu() {
  Profile profile = gpu_profile("host-cpu");
  profile.kernels = {{"", kProduct, 1, time(100e-6)}, {"", kRows, 2, time(7e-6)}, {"rope", kRows, 2, time(9e-6)}, {"", kProduct, 4, time(250e-6)}};
  return profile;
}

CostModel model(std::int32_t ranks) {
  Cluster cluster = make_cluster("host-threads", 1, {.gpus_per_node = ranks});
  cluster.node.collectives = {{kGather, time(1e-3)}};
  return CostModel(gpu(), cluster);
}

double microseconds(Seconds seconds) { return seconds.in(microsecond); }

}  // namespace

TEST_CASE("Threads of R ranks on P processors: R / P times as long from R = P on") {
  CHECK(crowding(1, 2) == 1);
  CHECK(crowding(2, 2) == 1);
  CHECK(crowding(4, 2) == 2);
  CHECK(crowding(8, 0) == 1);
  CHECK(thread_share(1, 2) == 0.5);
  CHECK(thread_share(4, 2) == 1);
  CHECK(thread_share(4, 0) == 0);
  CHECK(shared_processors(gpu()) == 2);
  CHECK(shared_processors(gpu_profile("a100-sxm4-80gb")) == 0);
}

TEST_CASE("A measured kernel: as many ranks if there is such a row, else by the ratio of crowdings; its name before no name") {
  CHECK(microseconds(*measured_time(gpu(), kProduct, "", 1)) == doctest::Approx(100));
  CHECK(microseconds(*measured_time(gpu(), kProduct, "", 2)) == doctest::Approx(100));
  CHECK(microseconds(*measured_time(gpu(), kProduct, "", 4)) == doctest::Approx(250));
  CHECK(microseconds(*measured_time(gpu(), kProduct, "", 8)) == doctest::Approx(400));
  CHECK(microseconds(*measured_time(gpu(), kRows, "rope", 2)) == doctest::Approx(9));
  CHECK(microseconds(*measured_time(gpu(), kRows, "norm", 2)) == doctest::Approx(7));
  KernelShape other = kProduct;
  other.k += 1;
  CHECK_FALSE(measured_time(gpu(), other, "", 1).has_value());
}

TEST_CASE("The cost model looks in the tables first; a thread takes its share of the processors and nothing else") {
  const KernelPrice one = model(1).kernel(kProduct), four = model(4).kernel(kProduct);
  CHECK(microseconds(one.alone) == doctest::Approx(100));
  CHECK(one.processor_share == 0.5);
  CHECK(four.processor_share == 1);
  CHECK(four.dram_share == 0);
  KernelShape other = kProduct;
  other.m = 1024;
  CHECK(microseconds(model(4).kernel(other).alone) == doctest::Approx(2 * microseconds(gemm_time(other, gemm_rates(gpu(), Dtype::fp32)))));
  CHECK(microseconds(model(4).collective(kGather).alone) == doctest::Approx(1000));
  CHECK(model(4).collective(kGather).processor_share == 1);
  CollectiveShape larger = kGather;
  larger.bytes *= 2;
  CHECK(model(4).collective(larger).alone.si() > 0);
}

TEST_CASE("Tables are written and read again") {
  const Profile again = parse_gpu_profile(gpu_profile_text(gpu()), "gpu.json");
  REQUIRE(again.kernels.size() == 4);
  CHECK(again.kernels[2].name == "rope");
  CHECK(again.kernels[2].shape == kRows);
  CHECK(again.kernels[3].ranks == 4);
  CHECK(again.kernels[3].time.value == doctest::Approx(250e-6));
  CHECK(again.kernels[3].time.origin == Origin::measured);
  const CostModel own = model(4);
  const Profile node = parse_node_profile(node_profile_text(own.cluster().node), "node.json");
  REQUIRE(node.collectives.size() == 1);
  CHECK(node.collectives[0].shape == kGather);
}

TEST_CASE("Tables are strict") {
  std::string text = gpu_profile_text(gpu());
  text.replace(text.find("\"what\": \"gemm\""), 14, "\"what\": \"sort\"");
  CHECK_THROWS_WITH_AS(parse_gpu_profile(text, "gpu.json"), doctest::Contains("/measured/0/what"), InputError);
  text = node_profile_text(model(4).cluster().node);
  text.replace(text.find("\"describes\": \"node\""), 19, "\"describes\": \"part\"");
  CHECK_THROWS_AS(parse_node_profile(text, "part.json"), InputError);
  std::string wrong = gpu_profile_text(gpu());
  const std::string collective = R"("measured": [{"what": "collective", "dtype": "fp32", "shape": {}, "value": "1 s", "kind": "measured", "source": "x"},)";
  wrong.replace(wrong.find("\"measured\": ["), 13, collective);
  CHECK_THROWS_WITH_AS(parse_gpu_profile(wrong, "gpu.json"), doctest::Contains("a node collectives"), InputError);
}
