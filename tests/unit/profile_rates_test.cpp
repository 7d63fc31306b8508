// FLOP, bandwidth and classes, by hand. docs/diagnose.md, "Rates".
#include <doctest/doctest.h>

#include "support/profile_json.hpp"
#include "trace/profile/rates.hpp"
#include "trace/profile/workload.hpp"

using stepcast::test::ProfileJson;
using namespace stepcast::trace::profile;

TEST_CASE("products are linked to their kernels; a call with two kernels counts its FLOP once") {
  const auto kernel = [](int ts, int dur, int id) {
    return fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":{},"dur":{},"args":{{"device":0,"stream":7,"correlation":{},"External id":{}}}}})", ts,
        dur, ts, id);
  };
  const Profile p = ProfileJson()
                        .event("cpu_op", "aten::mm", 0, 5, 1, R"("External id":4,"Input Dims":[[64, 32], [32, 16]])")
                        .event("cpu_op", "aten::mm", 5, 5, 1, R"("External id":5,"Input Dims":[[64, 32], [32, 16]])")
                        .raw(kernel(10, 20, 4))
                        .raw(kernel(40, 5, 4))
                        .raw(kernel(50, 20, 5))
                        .raw(kernel(80, 20, 6))
                        .read();
  const Rates rates = rates_of(p, 0);
  REQUIRE(rates.products.size() == 1);
  CHECK(rates.products[0].calls == 2);
  CHECK(rates.products[0].flop == 2 * 2.0 * 64 * 32 * 16);
  CHECK(rates.products[0].time == std::chrono::microseconds(45));
  CHECK(rates.classes.at("gemm").count == 4);
}

TEST_CASE("grouped products count by their operator, or by the products that it calls instead") {
  const auto kernel = [](const char* name, int ts, int dur, int id) {
    return fmt::format(R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},"dur":{},"args":{{"device":0,"stream":7,"External id":{}}}}})", name,
                       ts, dur, id);
  };
  const char* const dims = R"("Input Dims":[[512, 64], [8, 64, 96], [8], [], []])";
  const Profile p = ProfileJson()
                        .event("cpu_op", "aten::_grouped_mm", 0, 50, 1, fmt::format(R"("External id":4,{})", dims))
                        .event("cpu_op", "aten::_grouped_mm", 100, 50, 1, fmt::format(R"("External id":5,{})", dims))
                        .event("cpu_op", "aten::mm", 110, 5, 1, R"("External id":6,"Input Dims":[[300, 64], [64, 96]])")
                        .event("cpu_op", "aten::mm", 120, 5, 1, R"("External id":7,"Input Dims":[[212, 64], [64, 96]])")
                        .event("cpu_op", "aten::mm", 200, 5, 1, R"("External id":8,"Input Dims":[[512, 64], [64, 96]])")
                        .raw(kernel("cutlass::device_kernel<GroupedGemm>", 10, 20, 4))
                        .raw(kernel("gemm", 130, 5, 6))
                        .raw(kernel("gemm", 140, 5, 7))
                        .raw(kernel("gemm", 210, 5, 8))
                        .read();
  double flop = 0;
  for (const Products& products : rates_of(p, 0).products) flop += products.flop;
  CHECK(flop == 3 * 2.0 * 512 * 64 * 96);
  // The workload counts each grouped product once, and not the products within it.
  std::int64_t grouped = 0, plain = 0;
  for (const CountedProduct& product : workload_of(p, 0, Passes(p)).products) (product.product.groups == 8 ? grouped : plain) += product.count;
  CHECK(grouped == 2);
  CHECK(plain == 1);
}

TEST_CASE("bus bandwidth: nccl-tests' factors on the shortest of a kind") {
  const auto collective = [](const char* name, int ts, int dur, std::int64_t in, std::int64_t out) {
    return fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":20,"ts":{},"dur":{},"args":{{"device":0,"stream":20,"correlation":{},"Collective name":"x","In msg nelems":{},"Out msg nelems":{},"Group size":8,"dtype":"BFloat16"}}}})",
        name, ts, dur, ts, in, out);
  };
  const Profile p = ProfileJson()
                        .raw(collective("ncclDevKernel_AllGather_RING_LL", 0, 100, 1000000, 8000000))
                        .raw(collective("ncclDevKernel_AllGather_RING_LL", 200, 300, 1000000, 8000000))
                        .raw(collective("ncclDevKernel_AllReduce_Sum_bf16", 600, 50, 500000, 500000))
                        .kernel("gemm", 0, 40, 7, 9)
                        .read();
  const Rates rates = rates_of(p, 0);
  REQUIRE(rates.collectives.size() == 2);
  CHECK(rates.collectives[0].type == "allgather");
  CHECK(rates.collectives[0].count == 2);
  CHECK(rates.collectives[0].bytes == 16e6);
  CHECK(rates.collectives[0].exposed == std::chrono::microseconds(360));
  CHECK(*rates.collectives[0].bus_bandwidth() == doctest::Approx(16e6 / 100e-6 * 7 / 8));
  CHECK(*rates.collectives[1].bus_bandwidth() == doctest::Approx(1e6 / 50e-6 * 2 * 7 / 8));
  CHECK_FALSE(CollectiveRate{}.bus_bandwidth());
}

TEST_CASE("classes of kernels") {
  CHECK(kernel_class("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn") == "gemm");
  CHECK(kernel_class("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>") == "attention");
  CHECK(kernel_class("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>") == "elementwise");
  CHECK(kernel_class("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>>") == "optimizer");
  CHECK(kernel_class("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32") == "convolution");
  CHECK(kernel_class("void cunn_SoftMaxForward<8>") == "softmax");
  CHECK(kernel_class("anything") == "other");
}
