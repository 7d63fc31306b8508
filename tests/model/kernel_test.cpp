// docs/models.md, "Counts": FLOPs and bytes of kernel shapes, against hand sums.
#include "hw_models/kernel.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

using namespace stepcast;
using namespace stepcast::hw;

namespace {

KernelShape attention(KernelKind kind, bool causal, std::int64_t kv_heads) {
  return {.kind = kind, .attention = AttentionKernel::flash2, .causal = causal, .batch = 2, .m = 512, .n = 8, .k = 64, .kv_heads = kv_heads};
}

}  // namespace

TEST_CASE("GEMM: 2mnk FLOPs per product, every operand once") {
  const KernelShape shape{.kind = KernelKind::gemm, .batch = 3, .m = 10, .n = 20, .k = 30};
  CHECK(executed_flops(shape).si() == 3 * 2 * 10 * 20 * 30);
  CHECK(dram_bytes(shape).si() == 3 * 2 * (10 * 30 + 30 * 20 + 10 * 20));
  const KernelShape wide{.kind = KernelKind::gemm, .dtype = Dtype::fp32, .m = 10, .n = 20, .k = 30};
  CHECK(dram_bytes(wide).si() == 4 * (300 + 600 + 200));
}

TEST_CASE("GEMM: sizes whose product leaves 64 bits keep their magnitude") {
  const KernelShape huge{.kind = KernelKind::gemm, .batch = 1, .m = 4'000'000, .n = 4'000'000, .k = 4'000'000};
  CHECK(executed_flops(huge).si() == doctest::Approx(1.28e20));
}

TEST_CASE("Attention: 4 b a s s d forward, half with a causal mask, 2.5 times that backward") {
  const double full = 4.0 * 2 * 8 * 512 * 512 * 64;
  CHECK(executed_flops(attention(KernelKind::attention_forward, false, 8)).si() == full);
  CHECK(executed_flops(attention(KernelKind::attention_forward, true, 8)).si() == full / 2);
  CHECK(executed_flops(attention(KernelKind::attention_backward, true, 8)).si() == 2.5 * full / 2);
}

TEST_CASE("Attention: a window leaves the band below the diagonal, s w - w^2 / 2 of s^2 pairs") {
  KernelShape shape = attention(KernelKind::attention_forward, true, 8);
  shape.window = 128;  // 512 x 128 - 128^2 / 2 = 57,344 pairs
  CHECK(executed_flops(shape).si() == 4.0 * 2 * 8 * 57344 * 64);
  CHECK(attended_share(shape) == 57344.0 / (512 * 512));
  for (const std::int64_t window : {0, 512, 1000}) {
    shape.window = window;
    CHECK(attended_share(shape) == 0.5);
  }
  shape.causal = false;
  CHECK(attended_share(shape) == 1);
}

TEST_CASE("Attention: bytes shrink with grouped key and value heads, FLOPs do not") {
  const double q = 2.0 * 512 * 8 * 64;  // elements of q
  const double lse = 4.0 * 2 * 512 * 8;
  CHECK(dram_bytes(attention(KernelKind::attention_forward, true, 8)).si() == 2 * (q + q + q + q) + lse);
  CHECK(dram_bytes(attention(KernelKind::attention_forward, true, 2)).si() == 2 * (q + q + q / 4 + q / 4) + lse);
  CHECK(dram_bytes(attention(KernelKind::attention_forward, true, 0)).si() == dram_bytes(attention(KernelKind::attention_forward, true, 8)).si());
  CHECK(executed_flops(attention(KernelKind::attention_forward, true, 2)) == executed_flops(attention(KernelKind::attention_forward, true, 8)));
  // reads q o dO k v, writes dq dk dv (bf16), and dq three times in fp32
  CHECK(dram_bytes(attention(KernelKind::attention_backward, true, 2)).si() == 2 * (4 * q + 4 * q / 4) + 12 * q + lse);
}

TEST_CASE("Memory-bound kernels carry their bytes and no FLOPs") {
  const KernelShape shape{.kind = KernelKind::memory_bound, .read_bytes = 100, .write_bytes = 50};
  CHECK(dram_bytes(shape).si() == 150);
  CHECK(executed_flops(shape).si() == 0);
}
