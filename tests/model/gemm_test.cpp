// docs/models.md, "GEMM": the formula against hand sums. Against measurements: microbenchmarks_test.cpp.
#include "hw_models/gemm.hpp"

#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"

using namespace stepcast;
using namespace stepcast::hw;

namespace {

KernelShape gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  return {.kind = KernelKind::gemm, .batch = batch, .m = m, .n = n, .k = k};
}

/// Round figures: 100 FLOP/ns at efficiency 1, 1 byte/ns, no fixed time, 100 processors.
GemmRates round_gemm_rates() {
  return {.peak = FlopsPerSecond(100e9),
          .bandwidth = BytesPerSecond(1e15),
          .misaligned_ratio = 1.1,
          .even_columns_ratio = 1.4,
          .even_depth_ratio = 1.6,
          .odd_ratio = 3.5,
          .processors = 100};
}

}  // namespace

TEST_CASE("Quantisation: exactly one full wave costs nothing") {
  // 10 x 10 tiles of 128 x 256 on 100 processors
  CHECK(tile_wave_quantisation(gemm(1280, 2560, 4096), 100) == 1.0);
}

TEST_CASE("Quantisation: one tile too many starts a second wave, which splitting K softens") {
  // 101 tiles of 128 x 256 (m = 101 x 128, n = 256) or 51 x 1 = 51 tiles of 256 x 128 x 2 columns = 102. Split 1: 2 waves of 100 for 101: 1.98.
  // Split 2: 202 halves, 3 waves: 300/202 = 1.485 x 1.03; split 4: 404 quarters, 5 waves: 500/404 = 1.2376 x 1.06; split 8: 808, 9 waves: 900/808 x 1.09 = 1.2141.
  CHECK(tile_wave_quantisation(gemm(101 * 128, 256, 4096), 100) == doctest::Approx(900.0 / 808.0 * 1.09));
  // K too short to split: 128 x 128 tiles, 202 of them in 3 waves: 300/202 x 1.08 = 1.604 is the best
  CHECK(tile_wave_quantisation(gemm(101 * 128, 256, 256), 100) == doctest::Approx(300.0 / 202.0 * 1.08));
}

TEST_CASE("Quantisation: a ragged edge is computed in full") {
  // n = 2561 needs 11 columns of 256 instead of 10: 110 tiles, more than one wave; any choice is worse than the full wave
  CHECK(tile_wave_quantisation(gemm(1280, 2561, 4096), 100) > 1.05);
}

TEST_CASE("Time: compute bound by hand") {
  // 2 x 1280 x 2560 x 4096 = 26,843,545,600 FLOPs at 100 GFLOP/s
  CHECK(gemm_time(gemm(1280, 2560, 4096), round_gemm_rates()).si() == doctest::Approx(0.268435456));
  GemmRates fixed = round_gemm_rates();
  fixed.fixed_time = 1 * second;
  CHECK(gemm_time(gemm(1280, 2560, 4096), fixed).si() == doctest::Approx(1.268435456));
}

TEST_CASE("Time: a product of the backward takes its own ratio, and no longer where DRAM binds") {
  KernelShape product = gemm(1280, 2560, 4096);
  product.backward = true;
  GemmRates rates = round_gemm_rates();
  rates.backward_ratio = 1.25;
  CHECK(gemm_time(product, rates).si() == doctest::Approx(0.33554432));  // 1.25 x 0.268435456 s
  product.backward = false;
  CHECK(gemm_time(product, rates).si() == doctest::Approx(0.268435456));
  product.backward = true;
  rates.bandwidth = BytesPerSecond(1e6);
  CHECK(gemm_time(product, rates).si() == doctest::Approx(38.0108800));  // 2 x (1280 x 4096 + 4096 x 2560 + 1280 x 2560) = 38,010,880 B at 1 MB/s
}

TEST_CASE("Time: a batched product counts its tiles together and has its own DRAM efficiency") {
  CHECK(gemm_time(gemm(1280, 256, 4096, 10), round_gemm_rates()).si() == doctest::Approx(0.268435456));
  GemmRates slow_memory = round_gemm_rates();
  slow_memory.bandwidth = BytesPerSecond(1e6);
  slow_memory.batched_dram_efficiency = 0.25;
  CHECK(gemm_time(gemm(100, 112, 16, 8), slow_memory).si() == doctest::Approx(8 * 2.0 * (1600 + 1792 + 11200) / 0.25e6));
  CHECK(gemm_time(gemm(100, 100, 10, 8), slow_memory).si() == doctest::Approx(1.6 * 8 * 2.0 * (1000 + 1000 + 10000) / 0.25e6));  // narrow loads
}

TEST_CASE("Time: odd and misaligned sizes are slower") {
  GemmRates smooth = round_gemm_rates();
  smooth.wave_weight = 0;
  const Seconds aligned = gemm_time(gemm(1280, 2560, 4096), smooth);
  const double per_k = aligned.si() / 4096;
  CHECK(gemm_time(gemm(1280, 2560, 4104), smooth).si() == doctest::Approx(per_k * 4104 * 1.1));  // 4104 = 8 x 513
  CHECK(gemm_time(gemm(1280, 2560, 4097), smooth).si() == doctest::Approx(per_k * 4097 * 3.5));
  CHECK(gemm_time(gemm(1280, 2560, 4098), smooth).si() == doctest::Approx(per_k * 4098 * 1.6));
  CHECK(gemm_time(gemm(1280, 2560, 4100), smooth).si() == doctest::Approx(per_k * 4100 * 1.6));
  CHECK(gemm_time(gemm(1280, 2562, 4096), smooth).si() == doctest::Approx(aligned.si() * 2562 / 2560 * 1.4));
  CHECK(gemm_time(gemm(1280, 2562, 4098), smooth).si() == doctest::Approx(per_k * 4098 * 2562 / 2560 * 1.6));  // the dearer of the two
  CHECK(gemm_time(gemm(1280, 2561, 4098), smooth).si() == doctest::Approx(per_k * 4098 * 2561 / 2560 * 3.5));
  CHECK(gemm_time(gemm(1281, 2560, 4096), smooth) > aligned);  // m does not count: it is no leading dimension
  CHECK(gemm_time(gemm(1281, 2560, 4096), smooth).si() == doctest::Approx(aligned.si() * 1281 / 1280));
}

TEST_CASE("Time: a thin product is bound by its operands' bytes") {
  GemmRates slow_memory = round_gemm_rates();
  slow_memory.bandwidth = BytesPerSecond(1e6);
  slow_memory.dram_efficiency = 0.5;
  CHECK(gemm_time(gemm(1280, 2560, 64), slow_memory).si() == doctest::Approx(2.0 * (1280 * 64 + 64 * 2560 + 1280 * 2560) / 0.5e6));
}

TEST_CASE("Depth: short products spend a larger part of each tile filling and draining") {
  GemmRates rates = round_gemm_rates();
  rates.half_depth = 128;
  // k = 128: half the efficiency; k = 384: three quarters
  CHECK(gemm_time(gemm(1280, 2560, 128), rates).si() == doctest::Approx(2 * gemm_time(gemm(1280, 2560, 128), round_gemm_rates()).si()));
  CHECK(gemm_time(gemm(1280, 2560, 384), rates).si() == doctest::Approx(4.0 / 3 * gemm_time(gemm(1280, 2560, 384), round_gemm_rates()).si()));
}

TEST_CASE("The QKV projection of a 7B block, 65,536 tokens, on an A100: about 244 TFLOP/s forward, 224 backward") {
  // 2 x 65536 x 12288 x 4096 = 6.597 TFLOP at 0.8 x 312 = 249.6 TFLOP/s: 26.431 ms; depth 4186/4096: 27.011 ms; 512 x 48 = 24,576 tiles are 227.6 of 228
  // waves: 0.7 x 0.2 %: 27.048 ms; + 5 us. Backward: 1.09 x 27.048 ms + 5 us.
  const Profile a100 = gpu_profile("a100-sxm4-80gb");
  KernelShape product = gemm(65536, 12288, 4096);
  CHECK(gemm_time(product, gemm_rates(a100, Dtype::bf16)).in(millisecond) == doctest::Approx(27.053).epsilon(1e-4));
  product.backward = true;
  CHECK(gemm_time(product, gemm_rates(a100, Dtype::bf16)).in(millisecond) == doctest::Approx(29.487).epsilon(1e-4));
}

TEST_CASE("fp8: its own peak and share of it; operands of one byte, a result of two") {
  // 2 x 1024 x 2048 x 4096 FLOPs; (1024 x 4096 + 4096 x 2048) x 1 + 1024 x 2048 x 2 bytes
  KernelShape shape = gemm(1024, 2048, 4096);
  shape.dtype = Dtype::fp8;
  CHECK(dram_bytes(shape).si() == 12582912.0 + 4194304.0);
  const Profile h100 = gpu_profile("h100-sxm5-80gb");
  const GemmRates fp8 = gemm_rates(h100, Dtype::fp8), bf16 = gemm_rates(h100, Dtype::bf16);
  CHECK(fp8.peak.si() == 1979e12);
  CHECK(fp8.efficiency == doctest::Approx(0.88 * bf16.efficiency));
  Profile without = h100;
  without.constants.erase(without.constants.find("gemm_fp8_ratio"));
  CHECK_THROWS_AS((void)gemm_rates(without, Dtype::fp8), InputError);
}
