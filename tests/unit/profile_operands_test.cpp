// Operands from the texts that a profiler records, by hand. docs/diagnose.md, "Rates".
#include "trace/profile/operands.hpp"

#include <doctest/doctest.h>

using namespace stepcast::trace::profile;
using stepcast::hw::Dtype;

TEST_CASE("products: 2 m n k FLOP, times the batch") {
  CHECK(product_of("aten::mm", "[[64, 32], [32, 16]]") == Product{1, 64, 16, 32});
  CHECK(product_of("aten::mm", "[[64, 32], [32, 16]]")->flop() == 2.0 * 64 * 32 * 16);
  CHECK(product_of("aten::addmm", "[[16], [64, 32], [32, 16], [], []]")->flop() == 2.0 * 64 * 32 * 16);
  CHECK(product_of("aten::bmm", "[[8, 4, 5], [8, 5, 6]]")->flop() == 2.0 * 8 * 4 * 5 * 6);
  CHECK(product_of("aten::baddbmm", "[[8, 4, 6], [8, 4, 5], [8, 5, 6]]") == Product{8, 4, 6, 5});
  CHECK(product_of("MmBackward0 weight q", "[[64, 32], [32, 16]]") == Product{1, 64, 16, 32});
  CHECK(product_of("BmmBackward0 keys", "[[8, 4, 5], [8, 5, 6]]") == Product{8, 4, 6, 5});
  for (const char* wrong : {"", "[]", "[[64, 32]]", "[[64, 32], [31, 16]]", "[[2, 64, 32], [2, 32, 16]]", "[[[64, 32]], 7, [32"})
    CHECK_FALSE(product_of("aten::mm", wrong));
  CHECK_FALSE(product_of("aten::relu", "[[64, 32], [32, 16]]"));
  CHECK_FALSE(product_of("MmBackward0", "[[64, 32]]"));  // as PyTorch records it: the gradient alone
}

TEST_CASE("grouped products: the rows of all experts in one call, whatever is divided among them") {
  const Product forward{1, 512, 96, 64, 8};
  CHECK(product_of("aten::_grouped_mm", "[[512, 64], [8, 64, 96], [8], [], []]") == forward);
  CHECK(product_of("aten::_grouped_mm", "[[512, 64], [8, 64, 96], [8], [], []]")->flop() == 2.0 * 512 * 96 * 64);
  CHECK(product_of("aten::_scaled_grouped_mm", "[[512, 64], [8, 64, 96], [512], [8, 96], [8]]") == forward);
  CHECK(product_of("aten::_grouped_mm", "[[8, 96, 64], [64, 512], [8]]") == forward);                   // transposed
  CHECK(product_of("aten::_grouped_mm", "[[64, 512], [512, 96], [8]]") == Product{1, 64, 96, 512, 8});  // gradients of the weights
  CHECK(product_of("aten::_grouped_mm", "[[8, 4, 5], [8, 5, 6]]") == Product{8, 4, 6, 5});
  CHECK(product_of("GroupedGemm", "[[512, 64], [8, 64, 96], [8], []]") == forward);
  CHECK(product_of("GroupedGemm", "[[512, 64], [8, 96, 64], [8], []]") == forward);
  CHECK(product_of("_GroupedLinear", "[[512, 64], [], [], [96, 64], [96, 64], [96, 64], [96, 64], [0], [0]]") == Product{1, 512, 96, 64, 4});
  for (const char* wrong : {"", "[[512, 64]]", "[[512, 64], [8, 63, 96]]", "[[512, 64], [64]]", "[[8, 4, 5], [7, 5, 6]]"})
    CHECK_FALSE(product_of("aten::_grouped_mm", wrong));
  CHECK_FALSE(product_of("GroupedGemm", "[[512, 64], [8, 63, 96]]"));
  CHECK_FALSE(product_of("_GroupedLinear", "[[512, 64], [96, 64], [97, 64]]"));
  CHECK_FALSE(product_of("_GroupedLinear", "[[512, 64], []]"));
  CHECK_FALSE(product_of("GroupedGemmBackward", "[[512, 96]]"));  // the gradient alone
}

TEST_CASE("attention: heads before the length in PyTorch's own operators, behind it in flash attention's") {
  const AttentionCall call{2, 32, 8, 1024, 2048, 128, false};
  CHECK(attention_of("aten::_scaled_dot_product_flash_attention", "[[2, 32, 1024, 128], [2, 8, 2048, 128], [2, 8, 2048, 128], []]") == call);
  CHECK(attention_of("aten::_flash_attention_forward", "[[2, 1024, 32, 128], [2, 2048, 8, 128], [2, 2048, 8, 128], [], []]") == call);
  CHECK(attention_of("flash_attn::_flash_attn_forward", "[[2, 1024, 32, 128], [2, 2048, 8, 128], [2, 2048, 8, 128], [], []]") == call);
  CHECK(call.flop() == 4.0 * 2 * 32 * 1024 * 2048 * 128);
  const auto backward = attention_of("aten::_efficient_attention_backward", "[[1, 64, 4, 32], [1, 64, 4, 32], [1, 64, 4, 32], [1, 64, 4, 32]]");
  CHECK(backward == AttentionCall{1, 4, 4, 64, 64, 32, true});
  CHECK(backward->flop() == 10.0 * 4 * 64 * 64 * 32);
  CHECK_FALSE(attention_of("aten::scaled_dot_product_attention", "[[2, 32, 64, 8], [2, 32, 64, 8], [2, 32, 64, 8]]"));  // around the one that launches
  CHECK_FALSE(attention_of("aten::_flash_attention_forward", "[[64, 32, 128], [64, 32, 128]]"));
}

TEST_CASE("types") {
  CHECK(dtype_of(R"(["c10::BFloat16", "float"])") == Dtype::bf16);
  CHECK(dtype_of(R"(["", "Scalar", "float"])") == Dtype::fp32);
  CHECK(dtype_of(R"(["c10::Half", "c10::Half"])") == Dtype::fp16);
  CHECK(dtype_of(R"(["c10::Float8_e4m3fn"])") == Dtype::fp8);
  CHECK_FALSE(dtype_of(R"(["long int", "Scalar"])"));
  CHECK(dtype_of_collective("BFloat16") == Dtype::bf16);
  CHECK(dtype_of_collective("Float") == Dtype::fp32);
  CHECK_FALSE(dtype_of_collective("Long"));
}

TEST_CASE("lookups") {
  const auto lookup = lookup_of("aten::embedding", "[[32000, 4096], [2, 1024], [], [], []]");
  REQUIRE(lookup);
  CHECK(lookup->rows == 32000);
  CHECK(lookup->width == 4096);
  CHECK(lookup->batch == 2);
  CHECK(lookup->length == 1024);
  CHECK_FALSE(lookup_of("aten::embedding_dense_backward", "[[32000, 4096], [2, 1024]]"));
}

TEST_CASE("sizes that no tensor has can be multiplied without overflow") {
  const std::string huge = "9223372036854775807";
  const auto call = attention_of("aten::_flash_attention_forward", "[[1, 8, " + huge + ", " + huge + "], [1, 8, " + huge + ", " + huge + "]]");
  REQUIRE(call);
  CHECK(call->heads == (std::int64_t{1} << 30));
  CHECK(call->heads * call->head_dim == (std::int64_t{1} << 60));
}
