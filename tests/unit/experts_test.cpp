// Mixture of experts: parameters, shapes, kernels, host waits and saved activations of a Mixtral block against sums by hand.
// The list follows Hugging Face modeling_mixtral.py (MixtralSparseMoeBlock) and PyTorch's derivatives of its operators.
#include "program/blocks/experts.hpp"

#include <doctest/doctest.h>

#include <map>

#include "program/build.hpp"
#include "program/check.hpp"
#include "program/count.hpp"
#include "program/model.hpp"
#include "tests/support/block_tally.hpp"

namespace stepcast::program {
namespace {

using test::kHeads, test::kHidden, test::kTokens;
constexpr double kKv = 1024, kExpertFfn = 14336, kExperts = 8, kActive = 2;

TEST_CASE("Mixtral 8x7B: 46.7e9 parameters, 12.9e9 of them active") {
  const ModelShape m = test::mixtral_8x7b();
  CHECK(parameters(m) == 46'702'792'704);
  CHECK(active_parameters(m) == 12'879'925'248);
  CHECK(parameters_per_block(m) == 1'451'270'144);
  CHECK(block_tensors(m).size() == 4 + 2 + 1 + 8 * 3);
  CHECK(active_parameters(test::llama2_7b()) == parameters(test::llama2_7b()));
}

TEST_CASE("routed tokens are spread evenly, the remainder over the first experts") {
  CHECK(expert_rows(10, 4, 0) == 3);
  CHECK(expert_rows(10, 4, 1) == 3);
  CHECK(expert_rows(10, 4, 2) == 2);
  CHECK(expert_rows(10, 4, 3) == 2);
  StepSpec spec = test::two_blocks(test::mixtral_8x7b());
  spec.model.experts = 5;
  spec.batch.seq_len = 512;  // 1024 assignments: 205 four times, 204
  const Program p = build_program(spec, 1);
  std::map<std::int64_t, int> rows;
  for (const Op& op : p.slice(p.steps[0])) {
    if (op.kind == OpKind::launch && p.kernels[op.id].op == "aten::mm expert gate") ++rows[p.kernels[op.id].shape.m];
  }
  CHECK(rows == std::map<std::int64_t, int>{{204, 2}, {205, 2 * 4}});
}

TEST_CASE("a Mixtral block: 142 kernels forward, 304 backward") {
  const test::BlockTally t = test::tally(test::two_blocks(test::mixtral_8x7b()));
  // Llama-3's 40 without its 5 of the feed-forward; router: GEMM, cast, softmax, top-k of 2, sum, division, cast, one-hot of 2; zeros; per expert: non-zeros of 3, gather,
  // 5 of the feed-forward, gather of weights, product, addition.
  CHECK(t.forward.kernels() == 35 + 10 + 1 + 8 * 12);
  CHECK(t.forward.gemms == 4 + 1 + 8 * 3);
  CHECK(t.forward.gemm_flops == 2 * kTokens * (2 * kHidden * kHidden + 2 * kHidden * kKv + kHidden * kExperts + kActive * 3 * kHidden * kExpertFfn));
  // Llama-3's 77 without 10; per expert: gather, 2 products, sum, zeros and scatter (5) of the weights, 10 of the feed-forward, zeros and scatter (5) of the tokens;
  // 7 additions of weight gradients, 8 of input gradients; router: 14.
  CHECK(t.backward.kernels() == 67 + 8 * 26 + 7 + 8 + 14);
  CHECK(t.backward.gemms == 2 * t.forward.gemms);
  CHECK(t.backward.gemm_flops == 2 * t.forward.gemm_flops);
}

TEST_CASE("compiled: the graph breaks at every expert, and what lies between two breaks is fused") {
  StepSpec spec = test::two_blocks(test::mixtral_8x7b());
  spec.kernels.set = KernelSet::pytorch_compile;
  const test::BlockTally t = test::tally(spec);
  StepSpec dense = test::two_blocks(test::llama3_8b());
  dense.kernels.set = KernelSet::pytorch_compile;
  const test::BlockTally d = test::tally(dense);
  // Llama-3's without its 4 of the feed-forward; router: GEMM, softmax, top-k of 2, weights, mask; zeros; per expert: non-zeros of 3, gather, 4 of the feed-forward, addition.
  CHECK(t.forward.kernels() == d.forward.kernels() - 4 + 6 + 1 + 8 * 9);
  CHECK(t.forward.host_waits == 8);
  // per expert: 3 of the weights, gather, 7 of the feed-forward, zeros and scatter; 7 additions of weight gradients and 7 of tokens; router: zeros, scatter, softmax, 2 GEMMs.
  CHECK(t.backward.kernels() == d.backward.kernels() - 7 + 8 * 13 + 14 + 5);
  CHECK(t.backward.gemms == 2 * t.forward.gemms);
  const test::BlockTally eager = test::tally(test::two_blocks(test::mixtral_8x7b()));
  CHECK(t.forward.gemm_flops == eager.forward.gemm_flops);
  CHECK(t.forward.bytes < 0.5 * eager.forward.bytes);
  // gate and up of each routed token (4 f), its product (2 f), input and output (4 h), in place of gate, silu, up and product
  CHECK(test::saved_per_token(spec, 1) < 0.8 * test::saved_per_token(test::two_blocks(test::mixtral_8x7b()), 1));
}

TEST_CASE("the host waits for each expert's number of tokens, again when the block is recomputed") {
  StepSpec spec = test::two_blocks(test::mixtral_8x7b());
  CHECK(test::tally(spec).forward.host_waits == 8);
  CHECK(test::tally(spec).backward.host_waits == 0);
  spec.recompute.mode = RecomputeMode::full;
  CHECK(test::tally(spec).recompute.host_waits == 8);
}

TEST_CASE("saved activations of a Mixtral block") {
  StepSpec spec = test::two_blocks(test::mixtral_8x7b());
  // Llama's without 8 f; per routed token: input and output 4 h, 8 f, its weight 2 and coordinates 16; probabilities 4 E, choices 12 k, their sum 4.
  const double routed = 4 * kHidden + 8 * kExpertFfn + 18;
  CHECK(test::saved_per_token(spec, 1) == 24 * kHidden + 4 * kHeads + 8 + kActive * routed + 4 * kExperts + 12 * kActive + 4);
  spec.recompute.mode = RecomputeMode::full;
  CHECK(test::saved_per_token(spec, 1) == 2 * kHidden);
}

TEST_CASE("all frameworks and recomputation modes") {
  for (const Framework framework : {Framework::fsdp1, Framework::fsdp2, Framework::ddp}) {
    for (const RecomputeMode mode : {RecomputeMode::none, RecomputeMode::full, RecomputeMode::every_k, RecomputeMode::per_op}) {
      StepSpec spec = test::two_blocks(test::mixtral_8x7b());
      spec.policy.framework = framework;
      if (framework == Framework::ddp) spec.precision.reduce = spec.precision.master;
      spec.recompute.mode = mode;
      spec.recompute.ops = RecomputeOps::all_but_matmul;
      spec.batch = {.micro_batch = 2, .grad_accum = 2, .seq_len = 128};
      if (mode != RecomputeMode::every_k) spec.kernels.set = KernelSet::pytorch_compile;
      const auto findings = check(build_program(spec, 3));
      CHECK_MESSAGE(findings.empty(), findings.front().text);
    }
  }
}

TEST_CASE("model FLOPs count active parameters") {
  const ModelShape m = test::mixtral_8x7b();
  CHECK(model_flops_per_token(m, active_parameters(m), 4096, FlopsConvention::six_p).in(flop) == 6 * 12'879'925'248.0);
}

}  // namespace
}  // namespace stepcast::program
