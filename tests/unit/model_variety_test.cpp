// Blocks of other models against sums by hand: Falcon's parallel layout, Gemma 2's four norms and soft caps, Phi-3's fused projections, sliding windows.
// Lists after Hugging Face modeling_falcon.py, modeling_gemma2.py and modeling_phi3.py.
#include <doctest/doctest.h>

#include <map>

#include "program/blocks/lists.hpp"
#include "program/build.hpp"
#include "program/count.hpp"
#include "program/model.hpp"
#include "tests/support/block_tally.hpp"

namespace stepcast::program {
namespace {

constexpr double kTokens = 4096;

TEST_CASE("parameter counts by hand") {
  // q, k and v 4544 x 4672, out 4544^2, feed-forward 8 h^2, one norm of 2 h; tied embedding 65024 h, final norm 2 h.
  CHECK(parameters_per_block(test::falcon_7b()) == 4544LL * 4672 + 9LL * 4544 * 4544 + 2 * 4544);
  CHECK(parameters(test::falcon_7b()) == 6'921'720'704);
  // q and out 2 x 3584 x 4096, k and v 2 x 3584 x 2048, feed-forward 3 h f, four norms.
  CHECK(parameters_per_block(test::gemma2_9b()) == 3584LL * (2 * 4096 + 2 * 2048 + 3 * 14336 + 4));
  CHECK(parameters(test::gemma2_9b()) == 9'241'705'984);
  CHECK(parameters(test::phi3_mini()) == 3'821'079'552);
  CHECK(block_tensors(test::phi3_mini()).size() == 6);  // qkv, out, gate_up, down, two norms
}

TEST_CASE("Falcon: 19 kernels forward, 35 backward; 10 compiled") {
  StepSpec spec = test::two_blocks(test::falcon_7b());
  spec.batch = {.micro_batch = 2, .grad_accum = 1, .seq_len = 2048};
  test::BlockTally t = test::tally(spec);
  CHECK(t.forward.kernels() == 1 + 1 + 10 + 1 + 1 + 3 + 2);       // norm, qkv, rotary, attention, out, feed-forward, additions
  CHECK(t.backward.kernels() == 2 + 2 + 1 + 18 + 3 + 2 + 5 + 2);  // the same backward, with the concat of q, k and v gradients
  const double h = 4544, q = 4544, kv = 64, f = 4 * 4544;
  CHECK(t.forward.gemm_flops == 2 * kTokens * h * (q + 2 * kv + h + 2 * f));
  CHECK(t.backward.gemm_flops == 2 * t.forward.gemm_flops);
  // Norm 4 h, rotary 20 (q + kv), GELU 4 f, two additions of 6 h; 8 T of statistics.
  CHECK(t.forward.bytes == doctest::Approx(kTokens * (4 * h + 20 * (q + kv) + 4 * f + 12 * h)).epsilon(0.001));
  // The norm's output serves both branches: input 2 h, norm 2 h and 8, rotated q 2 q and k 2 kv, qkv as v 2 (q + 2 kv), attention 2 q, 4 a, up and GELU 4 f.
  CHECK(test::saved_per_token(spec, 1) == 4 * h + 8 + 2 * q + 2 * kv + 2 * (q + 2 * kv) + 2 * q + 4 * 71 + 4 * f);
  spec.kernels.set = KernelSet::pytorch_compile;
  t = test::tally(spec);
  CHECK(t.forward.kernels() == 10);  // norm, qkv, 2 rotary, attention, out, up, GELU, down, one addition of three
  CHECK(t.backward.gemm_flops == 2 * t.forward.gemm_flops);
}

TEST_CASE("Gemma 2: 56 kernels forward, 109 backward; soft caps of unfused attention") {
  StepSpec spec = test::two_blocks(test::gemma2_9b());
  test::BlockTally t = test::tally(spec);
  CHECK(t.forward.kernels() == 4 * 8 + 3 + 10 + 2 + 1 + 1 + 5 + 2);
  CHECK(t.backward.kernels() == 77 + 2 * 16);  // Llama-3's, and two more norms
  const double h = 3584, q = 4096, kv = 2048, f = 14336;
  CHECK(t.forward.gemm_flops == 2 * kTokens * h * (2 * q + 2 * kv + 3 * f));
  // Norms 4 x 36 h, rotary 20 (q + kv), two expansions of 2 (q + kv), GELU 4 f, product 6 f, two additions of 6 h.
  CHECK(t.forward.bytes == doctest::Approx(kTokens * (4 * 36 * h + 24 * (q + kv) + 10 * f + 12 * h)).epsilon(0.001));
  const double plain = t.forward.bytes;
  spec.kernels.attention = Attention::unfused;
  t = test::tally(spec);
  const double scores = kTokens * 16 * 4096;
  // Scale, mask, softmax, cast 20 bytes per score, divide, tanh, multiply 12 more; copy of the output 4 q.
  CHECK(t.forward.bytes == doctest::Approx(plain + 32 * scores + kTokens * 4 * q).epsilon(0.001));
  spec.model.attention_softcap = false;
  CHECK(t.backward.bytes - test::tally(spec).backward.bytes == doctest::Approx(14 * scores));  // multiply 4, tanh 6, divide 4
  spec.model.attention_softcap = true;
  spec.kernels.set = KernelSet::pytorch_compile;
  CHECK(test::tally(spec).forward.kernels() == 4 + 3 + 3 + 4 + 1 + 4 + 1);  // norms, q k v, rotary and expansion, attention, out, feed-forward, addition
}

TEST_CASE("Gemma 2: a window in even blocks, all positions in odd ones") {
  StepSpec spec = test::two_blocks(test::gemma2_9b());
  spec.model.layers = 4;
  spec.batch.seq_len = 8192;
  const Program p = build_program(spec, 1);
  std::vector<std::int64_t> windows;
  for (const Op& op : p.slice(p.steps[0])) {
    if (op.kind == OpKind::launch && p.kernels[op.id].shape.kind == hw::KernelKind::attention_forward) windows.push_back(p.kernels[op.id].shape.window);
  }
  CHECK(windows == std::vector<std::int64_t>{4096, 0, 4096, 0});
  spec.batch.seq_len = 4096;  // the window holds all
  for (const KernelEntry& kernel : build_program(spec, 1).kernels) CHECK(kernel.shape.window == 0);
}

TEST_CASE("embedding and head of Gemma 2: scaled table, capped logits") {
  const auto launches = [](const StepSpec& spec) {
    const Program p = build_program(spec, 1);
    std::map<std::string, int> result;
    for (const Op& op : p.slice(p.steps[0])) {
      if (op.kind == OpKind::launch) ++result[p.kernels[op.id].op];
    }
    return result;
  };
  StepSpec spec = test::two_blocks(test::gemma2_9b());
  spec.batch.seq_len = 512;
  std::map<std::string, int> found = launches(spec);
  for (const char* op : {"aten::mul embedding", "MulBackward0 embedding", "aten::tanh softcap", "TanhBackward0 softcap"}) CHECK_MESSAGE(found[op] == 1, op);
  spec.kernels.loss = Loss::fused;  // has the cap inside
  found = launches(spec);
  CHECK(found["aten::tanh softcap"] == 0);
  CHECK(found["TanhBackward0 softcap"] == 0);
}

TEST_CASE("Phi-3: fused projections take 3 launches less forward and 7 less backward") {
  const test::BlockTally t = test::tally(test::two_blocks(test::phi3_mini()));
  CHECK(t.forward.kernels() == 38 - 2 - 1);
  // qkv: 2 GEMMs and a concat for 6 and 2 additions; gate and up: 2 and a concat for 4 and an addition.
  CHECK(t.backward.kernels() == 75 - 5 - 2);
  const double h = 3072, f = 8192;
  CHECK(t.forward.gemm_flops == 2 * kTokens * (4 * h * h + 3 * h * f));
  CHECK(t.backward.gemm_flops == 2 * t.forward.gemm_flops);
  CHECK(t.forward.bytes == doctest::Approx(kTokens * (124 * h + 10 * f)).epsilon(0.001));
  StepSpec compiled = test::two_blocks(test::phi3_mini());
  compiled.kernels.set = KernelSet::pytorch_compile;
  CHECK(test::tally(compiled).forward.kernels() == 14 - 3);
  CHECK(test::tally(compiled).backward.gemms == 8);
}

TEST_CASE("clamped q, k and v of separate projections: three kernels each way") {
  ModelShape model = test::llama2_7b();
  model.clip_qkv = true;
  const test::BlockTally t = test::tally(test::two_blocks(model));
  CHECK(t.forward.kernels() == 38 + 3);
  CHECK(t.backward.kernels() == 75 + 3);
}

TEST_CASE("model FLOPs of a window: what is left of the sequence") {
  ModelShape m = test::llama2_7b();
  const auto attention = [&](FlopsConvention convention) {
    return model_flops_per_token(m, parameters(m), 4096, convention).in(flop)-6.0 * static_cast<double>(parameters(m));
  };
  const double full = attention(FlopsConvention::full_attention);
  CHECK(full == 12.0 * 32 * 4096 * 4096);
  m.sliding_window = 1024;  // the band below the diagonal: 1/4 x (1 - 1/8) of the square, 7/16 of the causal half
  CHECK(attention(FlopsConvention::full_attention) == full * 7 / 16);
  CHECK(attention(FlopsConvention::causal_attention) == full * 7 / 32);
  m.full_attention_every = 2;
  CHECK(attention(FlopsConvention::full_attention) == full * 23 / 32);
}

}  // namespace
}  // namespace stepcast::program
