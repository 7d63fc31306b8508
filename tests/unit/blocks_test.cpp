// Kernel counts, DRAM traffic and saved activations of the blocks against hand sums, in units of T h, T f (tokens x width) bytes.
// The lists follow Hugging Face modeling_llama.py and mosaicml/llm-foundry's blocks; saved bytes per token follow from what each derivative reads.
#include "program/blocks/lists.hpp"

#include <doctest/doctest.h>

#include "program/build.hpp"
#include "tests/support/block_tally.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using test::BlockTally, test::saved_per_token, test::tally, test::two_blocks;
using test::kFfn, test::kHeads, test::kHidden, test::kTf, test::kTh, test::kTokens;

TEST_CASE("Llama, eager: 38 kernels forward, 75 backward") {
  const BlockTally t = tally(two_blocks(test::llama2_7b()));
  CHECK(t.forward.kernels() == 38);
  CHECK(t.forward.gemms == 7);
  CHECK(t.forward.attention == 1);
  CHECK(t.backward.kernels() == 75);  // of which the fused attention's backward is 3
  CHECK(t.backward.gemms == 14);
  CHECK(t.backward.attention == 1);
  CHECK(t.backward.further == 2);
  // 2 norms of 36 Th, rotary 40 Th, 2 residuals of 6 Th; SiLU 4 Tf, product 6 Tf. Row statistics (4 T) add less than 0.1 %.
  CHECK(t.forward.bytes == doctest::Approx(124 * kTh + 10 * kTf).epsilon(0.001));
  CHECK(t.forward.bytes >= 124 * kTh + 10 * kTf);
  // 2 norms of 92 Th, rotary 60 Th, 5 additions of 6 Th; product 12 Tf, SiLU 6 Tf.
  CHECK(t.backward.bytes == doctest::Approx(274 * kTh + 18 * kTf).epsilon(0.001));
  CHECK(t.backward.bytes >= 274 * kTh + 18 * kTf);
  // 2 T (4 h^2 + 3 h f) forward, twice that backward.
  CHECK(t.forward.gemm_flops == 2 * kTokens * (4 * kHidden * kHidden + 3 * kHidden * kFfn));
  CHECK(t.backward.gemm_flops == 2 * t.forward.gemm_flops);
}

TEST_CASE("Llama with fused norms: 24 and 47") {
  StepSpec spec = two_blocks(test::llama2_7b());
  spec.kernels.fused_norm = true;
  const BlockTally t = tally(spec);
  CHECK(t.forward.kernels() == 24);
  CHECK(t.backward.kernels() == 47);
  CHECK(t.forward.bytes == doctest::Approx((124 - 2 * 32) * kTh + 10 * kTf).epsilon(0.001));
}

TEST_CASE("rotary positions by products of complex numbers: 3 kernels each way for q and for k; fused: one") {
  StepSpec spec = two_blocks(test::llama2_7b());
  spec.kernels.rope = RopeKernels::complex;
  const BlockTally complex = tally(spec);
  CHECK(complex.forward.kernels() == 38 - 2 * 5 + 2 * 3);
  CHECK(complex.backward.kernels() == 75 - 2 * 9 + 2 * 3);
  // To fp32 6, product 8, back 6 per element.
  CHECK(complex.forward.bytes == doctest::Approx((124 - 2 * 20 + 2 * 20) * kTh + 10 * kTf).epsilon(0.001));
  CHECK(complex.backward.bytes == doctest::Approx((274 - 2 * 30 + 2 * 20) * kTh + 18 * kTf).epsilon(0.001));
  spec.kernels.rope = RopeKernels::fused;
  const BlockTally fused = tally(spec);
  CHECK(fused.forward.kernels() == 38 - 2 * 5 + 2);
  CHECK(fused.backward.kernels() == 75 - 2 * 9 + 2);
  CHECK(fused.forward.bytes == doctest::Approx((124 - 2 * 20 + 2 * 4) * kTh + 10 * kTf).epsilon(0.001));
  CHECK(fused.backward.bytes == doctest::Approx((274 - 2 * 30 + 2 * 4) * kTh + 18 * kTf).epsilon(0.001));
}

TEST_CASE("Llama compiled: 14 and 26") {
  StepSpec spec = two_blocks(test::llama2_7b());
  spec.kernels.set = KernelSet::pytorch_compile;
  const BlockTally t = tally(spec);
  CHECK(t.forward.kernels() == 14);
  CHECK(t.backward.kernels() == 26);
  CHECK(t.backward.gemms == 14);
  // norm 4 Th, norm with residual 8 Th, rotary 8 Th, addition 6 Th; SiLU and product 6 Tf.
  CHECK(t.forward.bytes == doctest::Approx(26 * kTh + 6 * kTf).epsilon(0.001));
  CHECK(t.forward.gemm_flops == tally(two_blocks(test::llama2_7b())).forward.gemm_flops);
}

TEST_CASE("grouped keys and values: smaller GEMMs and rotary kernels, four kernels of expansion") {
  const BlockTally t = tally(two_blocks(test::llama3_8b()));
  CHECK(t.forward.kernels() == 40);
  CHECK(t.backward.kernels() == 77);
  const double kv = 1024, f = 14336;
  CHECK(t.forward.gemm_flops == 2 * kTokens * (2 * kHidden * kHidden + 2 * kHidden * kv + 3 * kHidden * f));
  // Rotary: 20 T (h + kv); expansion of two: 2 T (h + kv) each.
  CHECK(t.forward.bytes == doctest::Approx(84 * kTh + 24 * kTokens * (kHidden + kv) + 10 * kTokens * f).epsilon(0.001));
}

TEST_CASE("grouped keys and values read as they are: no expansion, a fifth of the bytes saved for k and v less") {
  StepSpec spec = two_blocks(test::llama3_8b());
  const double expanded = saved_per_token(spec, 1);
  spec.kernels.expand_kv = false;
  BlockTally t = tally(spec);
  CHECK(t.forward.kernels() == 38);
  CHECK(t.backward.kernels() == 75);
  CHECK(expanded - saved_per_token(spec, 1) == 2 * 2 * (kHidden - 1024));
  const Program p = build_program(spec, 1);
  for (const KernelEntry& kernel : p.kernels) {
    if (kernel.shape.kind == hw::KernelKind::attention_forward) CHECK(kernel.shape.kv_heads == 8);
  }
  spec.kernels.set = KernelSet::pytorch_compile;
  t = tally(spec);
  CHECK(t.forward.kernels() == 14);  // the rotary kernel no longer writes repeated keys, and values are not copied
  CHECK(t.backward.kernels() == 26);
}

TEST_CASE("loss: DRAM bytes per logit of each kind") {
  const auto per_logit = [](Loss loss, KernelSet set) {
    StepSpec spec = two_blocks(test::llama2_7b());
    spec.kernels.loss = loss, spec.kernels.set = set;
    const Program p = build_program(spec, 2);
    double bytes = 0;
    for (const Op& op : p.slice(p.steps[1])) {
      if (op.kind != OpKind::launch || p.kernels[op.id].shape.kind != hw::KernelKind::memory_bound) continue;
      for (const Operand& operand : p.operands_of(op)) {
        if (p.buffers[operand.buffer].owner != Owner::loss) continue;
        bytes += static_cast<double>(p.kernels[op.id].shape.read_bytes + p.kernels[op.id].shape.write_bytes);
        break;
      }
    }
    return bytes / (kTokens * 32000);
  };
  // Cast 6, shifted copy 8, log-softmax 8; one-hot gradient 4, log-softmax 12, zeros 4 and copy 8, cast 6.
  CHECK(per_logit(Loss::eager_fp32, KernelSet::pytorch_eager) == doctest::Approx(56).epsilon(0.001));
  // Cast 6, shifted copy 8, one pass 4; gradient in place 8, zeros 4 and copy 8, cast 6.
  CHECK(per_logit(Loss::fused_fp32, KernelSet::pytorch_eager) == doctest::Approx(44).epsilon(0.001));
  CHECK(per_logit(Loss::fused, KernelSet::pytorch_eager) == doctest::Approx(12).epsilon(0.001));
  CHECK(per_logit(Loss::eager_fp32, KernelSet::pytorch_compile) == doctest::Approx(56).epsilon(0.001));  // compilers are given blocks
}

TEST_CASE("GPT: 10 kernels forward, with clamp 11; bias sums in the backward") {
  ModelShape model = test::mpt_7b();
  model.attention_bias = model.output_bias = model.ffn_bias = model.norm_bias = false;
  BlockTally t = tally(two_blocks(model));
  CHECK(t.forward.kernels() == 10);
  // 8 GEMMs, 2 norms of 2, GELU, 3 attention, concat of dq dk dv, 2 additions.
  CHECK(t.backward.kernels() == 20 - 1);
  CHECK(t.forward.bytes == doctest::Approx(36 * kTh).epsilon(0.001));   // 2 norms of 4, 2 additions of 6, GELU 16
  CHECK(t.backward.bytes == doctest::Approx(68 * kTh).epsilon(0.001));  // 2 norms of 10, 2 additions of 6, GELU 24, concat 12
  model.clip_qkv = true;
  t = tally(two_blocks(model));
  CHECK(t.forward.kernels() == 11);
  CHECK(t.backward.kernels() == 20);
  CHECK(t.forward.bytes == doctest::Approx(48 * kTh).epsilon(0.001));
  t = tally(two_blocks(test::mpt_7b()));
  CHECK(t.forward.kernels() == 10);  // biases ride in the GEMMs
  CHECK(t.backward.kernels() == 19 + 4);
  CHECK(t.backward.bytes == doctest::Approx((68 + 18) * kTh).epsilon(0.001));  // sums over 3h + h + 4h + h columns of 2 bytes
}

TEST_CASE("unfused attention") {
  StepSpec spec = two_blocks(test::llama2_7b());
  spec.kernels.attention = Attention::unfused;
  const double scores = kTokens * kHeads * 4096;  // a s T elements
  const BlockTally llama = tally(spec);
  CHECK(llama.forward.gemms == 7 + 2);
  CHECK(llama.backward.gemms == 14 + 4);
  // scale 4, mask 4, softmax 2 -> 4, cast 4 -> 2 bytes per score; copy of the output 4 Th.
  CHECK(llama.forward.bytes == doctest::Approx(128 * kTh + 10 * kTf + 20 * scores).epsilon(0.001));
  // cast 6, softmax backward 4 + 4 -> 2, scale 4.
  CHECK(llama.backward.bytes == doctest::Approx(274 * kTh + 18 * kTf + 20 * scores).epsilon(0.001));

  spec = two_blocks(test::mpt_7b());
  spec.kernels.attention = Attention::unfused;
  const BlockTally mpt = tally(spec);
  const double square = 2048.0 * 2048;
  spec.batch = {.micro_batch = 2, .grad_accum = 1, .seq_len = 2048};
  // ones 4, tril 8, bool 5, not 2 bytes per element of the s x s mask; scale 4, fill 4, softmax 4 bytes per score.
  CHECK(tally(spec).forward.bytes == doctest::Approx(40 * kTh + 12 * scores / 2 + 19 * square).epsilon(0.001));
  CHECK(mpt.forward.gemms == 4 + 2);
}

TEST_CASE("saved activations per token") {
  const double h = kHidden, f = kFfn, a = kHeads, s = 4096;
  SUBCASE("GPT, fused attention: 32 h + 4 a, 16 of norm statistics") { CHECK(saved_per_token(two_blocks(test::mpt_7b()), 1) == 32 * h + 4 * a + 16); }
  SUBCASE("GPT, unfused: + 2 a s, no log-sum-exp") {
    StepSpec spec = two_blocks(test::mpt_7b());
    spec.kernels.attention = Attention::unfused;
    CHECK(saved_per_token(spec, 1) == 32 * h + 2 * a * s + 16);
  }
  SUBCASE("Llama, eager norms: 16 h of norms, 8 h of attention, 8 f: 45.5 h") {
    CHECK(saved_per_token(two_blocks(test::llama2_7b()), 1) == 24 * h + 8 * f + 4 * a + 8);
    CHECK(24 * h + 8 * f == 45.5 * h);
  }
  SUBCASE("Llama, unfused attention: + 6 a s") {
    StepSpec spec = two_blocks(test::llama2_7b());
    spec.kernels.attention = Attention::unfused;
    CHECK(saved_per_token(spec, 1) == 45.5 * h + 6 * a * s + 8);
  }
  SUBCASE("Llama, fused norms: 37.5 h") {
    StepSpec spec = two_blocks(test::llama2_7b());
    spec.kernels.fused_norm = true;
    CHECK(saved_per_token(spec, 1) == 37.5 * h + 4 * a + 8);
  }
  SUBCASE("Llama compiled: 16 h + 6 f") {
    StepSpec spec = two_blocks(test::llama2_7b());
    spec.kernels.set = KernelSet::pytorch_compile;
    CHECK(saved_per_token(spec, 1) == 16 * h + 6 * f + 4 * a + 8);
  }
  SUBCASE("Llama-3: keys and values are saved expanded") { CHECK(saved_per_token(two_blocks(test::llama3_8b()), 1) == 24 * h + 8 * 14336 + 4 * a + 8); }
  SUBCASE("full recomputation: the block's input, 2 h") {
    for (const ModelShape& model : {test::llama2_7b(), test::mpt_7b()}) {
      StepSpec spec = two_blocks(model);
      spec.recompute.mode = RecomputeMode::full;
      CHECK(saved_per_token(spec, 1) == 2 * h);
    }
  }
}

TEST_CASE("full recomputation runs the forward again, without what no derivative needs") {
  StepSpec spec = two_blocks(test::llama2_7b());
  spec.recompute.mode = RecomputeMode::full;
  spec.recompute.early_stop = false;
  BlockTally t = tally(spec);
  CHECK(t.recompute.kernels() == 38);
  CHECK(t.backward.kernels() == 75);
  spec.recompute.early_stop = true;  // without the down projection and the residual addition
  t = tally(spec);
  CHECK(t.recompute.kernels() == 36);
  CHECK(t.recompute.gemm_flops == 2 * kTokens * (4 * kHidden * kHidden + 2 * kHidden * kFfn));
}

TEST_CASE("fused attention says which, and what is skipped") {
  StepSpec spec = two_blocks(test::llama3_8b());
  spec.kernels.attention = Attention::triton;
  spec.kernels.causal_skip = false;
  spec.batch = {.micro_batch = 3, .grad_accum = 1, .seq_len = 1024};
  const Program p = build_program(spec, 1);
  int found = 0;
  for (const KernelEntry& kernel : p.kernels) {
    if (kernel.shape.kind != hw::KernelKind::attention_forward) continue;
    ++found;
    CHECK(kernel.shape.attention == hw::AttentionKernel::triton);
    CHECK_FALSE(kernel.shape.causal);
    CHECK(kernel.shape.batch == 3);
    CHECK(kernel.shape.m == 1024);
    CHECK(kernel.shape.n == 32);
    CHECK(kernel.shape.k == 128);
    CHECK(kernel.shape.kv_heads == 32);  // expanded before
  }
  CHECK(found == 1);
}

TEST_CASE("host work says who launches") {
  const auto launches = [](const StepSpec& spec, hw::HostWork work) {
    const Program p = build_program(spec, 2);
    int count = 0;
    for (const Op& op : p.slice(p.steps[1])) count += op.kind == OpKind::launch && op.work == work;
    return count;
  };
  StepSpec spec = two_blocks(test::llama2_7b());
  CHECK(launches(spec, hw::HostWork::op_compiled) == 0);
  spec.kernels.set = KernelSet::pytorch_compile;
  CHECK(launches(spec, hw::HostWork::op_compiled) == 2 * (14 + 24));
}

}  // namespace
}  // namespace stepcast::program
