// docs/models.md, "Attention": the formula against hand sums. Against measurements: microbenchmarks_test.cpp.
#include "hw_models/attention.hpp"

#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"

using namespace stepcast;
using namespace stepcast::hw;

namespace {

AttentionRates round_attention_rates() {
  return {.rate_64 = 100 * TFLOPS,
          .rate_128 = 200 * TFLOPS,
          .half_length = 100,
          .causal_stretch = 3,
          .forward_share = 0.25,
          .bandwidth = BytesPerSecond(1e18),
          .processors = 100};
}

KernelShape shape(KernelKind kind, std::int64_t batch, std::int64_t heads, std::int64_t length, bool causal) {
  return {.kind = kind, .attention = AttentionKernel::flash2, .causal = causal, .batch = batch, .m = length, .n = heads, .k = 128};
}

}  // namespace

TEST_CASE("Rate by head dimension: linear between 64 and 128, constant above") {
  CHECK(attention_rate(round_attention_rates(), 64).in(TFLOPS) == 100);
  CHECK(attention_rate(round_attention_rates(), 96).in(TFLOPS) == 150);
  CHECK(attention_rate(round_attention_rates(), 128).in(TFLOPS) == 200);
  CHECK(attention_rate(round_attention_rates(), 256).in(TFLOPS) == 200);
  CHECK(attention_rate(round_attention_rates(), 32).in(TFLOPS) == 50);
}

TEST_CASE("Forward takes a quarter and backward three quarters of the time of both") {
  // unmasked, s = 900: rise 900/1000; both = 3.5 x 4 x 4 x 32 x 900^2 x 128 = 185.79 GFLOP at 180 TFLOP/s = 1032.2 us; blocks 4 x 32 x 8 > 100
  const double both = 3.5 * 4 * 4 * 32 * 900.0 * 900.0 * 128 / 180e12;
  CHECK(attention_time(shape(KernelKind::attention_forward, 4, 32, 900, false), round_attention_rates()).si() == doctest::Approx(both / 4));
  CHECK(attention_time(shape(KernelKind::attention_backward, 4, 32, 900, false), round_attention_rates()).si() == doctest::Approx(both * 3 / 4));
}

TEST_CASE("An implementation's own share of the forward goes before the common one") {
  Profile gpu = gpu_profile("a100-sxm4-80gb");
  gpu.constants.at("attention_forward_share").value = 0.3;
  gpu.constants.at("attention_triton_forward_share").value = 0.2;
  CHECK(attention_rates(gpu, AttentionKernel::triton).forward_share == 0.2);
  CHECK(attention_rates(gpu, AttentionKernel::flash2).forward_share == 0.3);
}

TEST_CASE("A causal mask halves the work and lengthens the rise") {
  // s = 700: rise 700/(700 + 300) = 0.7 instead of 700/800 = 0.875
  const Seconds full = attention_time(shape(KernelKind::attention_forward, 4, 32, 700, false), round_attention_rates());
  const Seconds causal = attention_time(shape(KernelKind::attention_forward, 4, 32, 700, true), round_attention_rates());
  CHECK(causal / full == doctest::Approx(0.5 * 0.875 / 0.7));
}

TEST_CASE("A window's rows are as long as those of the causal square with as many pairs") {
  // s = 2800, window 700: 1/4 x 7/8 = 7/32 of the pairs, as many per row as a causal square of 1225 has: rise 1225/1525 for 2800/3100.
  KernelShape windowed = shape(KernelKind::attention_forward, 4, 32, 2800, true);
  const Seconds causal = attention_time(windowed, round_attention_rates());
  windowed.window = 700;
  CHECK(attention_time(windowed, round_attention_rates()) / causal == doctest::Approx(7.0 / 16 * (2800.0 / 3100) / (1225.0 / 1525)));
}

TEST_CASE("Few heads leave processors idle: 1 x 5 x 1024/128 = 40 row blocks on 100 processors") {
  const Seconds few = attention_time(shape(KernelKind::attention_forward, 1, 5, 1024, false), round_attention_rates());
  const Seconds many = attention_time(shape(KernelKind::attention_forward, 1, 50, 1024, false), round_attention_rates());
  CHECK(many / few == doctest::Approx(10 * 0.4));
}

TEST_CASE("An implementation without figures for the GPU is refused by name") {
  const Profile a100 = gpu_profile("a100-sxm4-40gb");
  CHECK_NOTHROW(attention_rates(a100, AttentionKernel::flash2));
  CHECK_THROWS_WITH_AS(attention_rates(a100, AttentionKernel::flash3), doctest::Contains("flash3"), InputError);
}
