// docs/models.md, "FLOPs and utilisation".
#include "hw_models/utilisation.hpp"

#include <doctest/doctest.h>

using namespace stepcast;
using namespace stepcast::hw;

TEST_CASE("2200 tokens per second and GPU at 6 x 7e9 FLOPs are 92.4 TFLOP/s, 29.6 % of an A100") {
  const FlopCounts nominal{.matmul_parameters = 7'000'000'000};
  const Flops per_token = model_flops_per_token(nominal, kNoAttention);
  CHECK(per_token.si() == doctest::Approx(42e9));
  CHECK(per_token.si() * 2200 == doctest::Approx(92.4e12));
  CHECK(utilisation(per_token, 2200, 312 * TFLOPS) == doctest::Approx(0.2962).epsilon(1e-3));
}

TEST_CASE("The 2048-token MPT-7B row: 6P with the tied table and positions, all pairs, gives the MFU that llm-foundry prints") {
  // llm-foundry counts N = 6,658,859,008 at 2048 positions, L = 32, a = 4096: 6 N = 39.953 GFLOP, 12 x 32 x 4096 x 2048 = 3.221 GFLOP, together 43.174.
  const FlopCounts mpt{.matmul_parameters = 6'658'859'008, .layers = 32, .attention_width = 4096, .seq_len = 2048};
  CHECK(model_flops_per_token(mpt, kAllPairs).si() == doctest::Approx(43.174e9).epsilon(1e-4));
  CHECK(utilisation(model_flops_per_token(mpt, kAllPairs), 3697.19, 312 * TFLOPS) == doctest::Approx(0.5116).epsilon(1e-3));
}

TEST_CASE("Conventions by hand: P = 100, L = 2, a = 8, s = 4") {
  const FlopCounts counts{.matmul_parameters = 100, .layers = 2, .attention_width = 8, .seq_len = 4};
  CHECK(forward_flops_per_token(counts, kAllPairs).si() == 200 + 256);       // 4 x 2 x 8 x 4
  CHECK(model_flops_per_token(counts, kAllPairs).si() == 600 + 768);         // 6 P + 12 L a s
  CHECK(model_flops_per_token(counts, kCausalPairs).si() == 600 + 384);      // half of the attention
  CHECK(model_flops_per_token(counts, kNoAttention).si() == 600);            // 6 P
  CHECK(hardware_flops_per_token(counts, kAllPairs, 1).si() == 800 + 1024);  // 8 P + 16 L a s
  CHECK(hardware_flops_per_token(counts, kAllPairs, 0).si() == model_flops_per_token(counts, kAllPairs).si());
}

TEST_CASE("A batch of 1024 sequences: 64 x 16 x 1 and 64 x 4 x 4") {
  CHECK(global_batch_sequences(64, 16, 1) == 1024);
  CHECK(global_batch_sequences(64, 4, 4) == 1024);
}
