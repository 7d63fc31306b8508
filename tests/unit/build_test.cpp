// Whole programs over the space of settings: proven free of races, leaks and misuse of memory by the check executor; steps shared; built fast.
#include "program/build.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "program/check.hpp"
#include "program/model.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

StepSpec small(const ModelShape& model, std::int64_t layers) {
  StepSpec spec = test::reference_step(model);
  spec.model.layers = layers;
  spec.batch.seq_len = 512;
  return spec;
}

void expect_clean(const StepSpec& spec, const std::string& what) {
  CAPTURE(what);
  const Program program = build_program(spec, 3);
  const auto findings = check(program);
  CHECK(findings.empty());
  for (std::size_t i = 0; i < std::min<std::size_t>(findings.size(), 3); ++i) MESSAGE(findings[i].text);
}

TEST_CASE("every combination of sharding, prefetching, limiter and accumulation is free of races and leaks") {
  for (const Sharding sharding : {Sharding::full_shard, Sharding::shard_grad_op}) {
    for (const BackwardPrefetch prefetch : {BackwardPrefetch::pre, BackwardPrefetch::post, BackwardPrefetch::none}) {
      for (int bits = 0; bits < 16; ++bits) {
        StepSpec spec = small(test::llama2_7b(), 3);
        spec.policy.sharding = sharding;
        spec.policy.backward_prefetch = prefetch;
        spec.policy.forward_prefetch = bits & 1;
        spec.policy.limit_all_gathers = bits & 2;
        spec.policy.no_sync = bits & 4;
        spec.policy.use_orig_params = bits & 8;
        spec.batch.grad_accum = bits & 4 ? 3 : 1 + bits % 2;
        expect_clean(spec, "bits " + std::to_string(bits) + " prefetch " + std::to_string(static_cast<int>(prefetch)));
      }
    }
  }
}

TEST_CASE("every kernel list is free of races and leaks") {
  ModelShape alibi = test::mpt_7b();
  alibi.positions = Positions::alibi;
  alibi.clip_qkv = true;
  ModelShape rotary_gpt = test::mpt_7b();
  rotary_gpt.positions = Positions::rope;
  rotary_gpt.ffn_kind = FfnKind::swiglu;
  rotary_gpt.norm = NormKind::rms_norm;
  rotary_gpt.norm_bias = false;
  ModelShape other_llama = test::llama3_8b();
  other_llama.norm = NormKind::layer_norm;
  other_llama.ffn_kind = FfnKind::gelu;
  other_llama.positions = Positions::none;
  other_llama.clip_qkv = true;
  int number = 0;
  for (const ModelShape& model : {test::llama2_7b(), test::llama3_8b(), test::mpt_7b(), alibi, rotary_gpt, other_llama, test::falcon_7b(), test::gemma2_9b(),
                                  test::phi3_mini(), test::mixtral_8x7b()}) {
    for (int bits = 0; bits < 64; ++bits) {
      StepSpec spec = small(model, 2);
      spec.kernels.set = bits & 1 ? KernelSet::pytorch_compile : KernelSet::pytorch_eager;
      spec.kernels.attention = bits & 2 ? Attention::unfused : Attention::flash2;
      spec.kernels.loss = bits & 4 ? Loss::fused : Loss::eager_fp32;
      spec.recompute.mode = bits & 8 ? RecomputeMode::full : RecomputeMode::none;
      spec.recompute.early_stop = bits & 16;
      spec.kernels.fused_norm = bits & 32;
      spec.batch.micro_batch = 1 + bits % 2;
      expect_clean(spec, "model " + std::to_string(number) + " bits " + std::to_string(bits));
    }
    ++number;
  }
}

TEST_CASE("types, ranks, units and optimizers: free of races and leaks") {
  using enum hw::Dtype;
  for (const Precision precision : {Precision{bf16, bf16, fp32}, Precision{bf16, fp32, fp32}, Precision{bf16, bf16, bf16}, Precision{fp32, fp32, fp32}}) {
    for (const hw::GroupShape world : {hw::GroupShape{1, 1}, hw::GroupShape{3, 1}, hw::GroupShape{8, 4}, hw::GroupShape{7, 1}}) {
      for (const OptimizerImpl optimizer : {OptimizerImpl::for_loop, OptimizerImpl::foreach, OptimizerImpl::fused}) {
        for (int bits = 0; bits < 8; ++bits) {
          StepSpec spec = small(test::gpt2_xl(), 3);
          spec.precision = precision;
          spec.world = world;
          spec.optimizer.implementation = optimizer;
          spec.optimizer.clip_grad_norm = bits & 1;
          spec.policy.use_orig_params = bits & 2;
          spec.policy.blocks_per_unit = bits & 1 ? 2 : 1;
          spec.batch.grad_accum = bits & 4 ? 3 : 1;
          spec.policy.no_sync = bits == 5;
          expect_clean(spec, "ranks " + std::to_string(world.ranks()) + " bits " + std::to_string(bits));
        }
      }
    }
  }
}

TEST_CASE("fixed costs: clean too") {
  StepSpec spec = test::fixed_step(4);
  spec.batch.grad_accum = 2;
  expect_clean(spec, "fixed");
}

/// The program without the ops of its second step for which `drop` holds.
template <typename Drop>
std::size_t findings_without(const StepSpec& spec, Drop drop) {
  Program p = build_program(spec, 2);
  int dropped = 0;
  for (const Range& step : p.steps) {
    for (std::uint32_t i = step.begin; i < step.end; ++i) {
      if (drop(p, p.ops[i])) p.ops[i] = Op{.kind = OpKind::host_work}, ++dropped;
    }
  }
  CHECK(dropped > 0);
  return check(p).size();
}

TEST_CASE("no wait of the schedule is idle: without it the checker finds a race") {
  StepSpec spec = small(test::llama2_7b(), 4);
  const auto wait = [](Stream waiter, const char* tail) {
    return [=](const Program& p, const Op& op) {
      return op.kind == OpKind::wait && op.stream == waiter && p.events[op.id].label == std::string("tail of ") + tail;
    };
  };
  CHECK(findings_without(spec, wait(Stream::compute, "unshard")) > 0);
  CHECK(findings_without(spec, wait(Stream::unshard, "pre_unshard")) > 0);
  CHECK(findings_without(spec, wait(Stream::pre_unshard, "compute")) > 0);
  CHECK(findings_without(spec, wait(Stream::post_backward, "compute")) > 0);
  CHECK(findings_without(spec, wait(Stream::compute, "post_backward")) > 0);
  const auto kind = [](OpKind k) { return [=](const Program&, const Op& op) { return op.kind == k; }; };
  CHECK(findings_without(spec, kind(OpKind::record_stream)) > 0);
  CHECK(findings_without(spec, kind(OpKind::free)) > 0);
}

TEST_CASE("matrix products of a step: 6 T P, P being the parameters that GEMMs multiply with") {
  for (const ModelShape& model : {test::llama3_8b(), test::mpt_7b()}) {
    for (const KernelSet set : {KernelSet::pytorch_eager, KernelSet::pytorch_compile}) {
      StepSpec spec = small(model, 2);
      spec.kernels.set = set;
      const Program p = build_program(spec, 1);
      double flops = 0;
      for (const Op& op : p.slice(p.steps[0])) {
        if (op.kind == OpKind::launch && p.kernels[op.id].shape.kind == hw::KernelKind::gemm) flops += hw::executed_flops(p.kernels[op.id].shape).si();
      }
      CHECK(flops == 6.0 * 512 * static_cast<double>(matmul_parameters(spec.model)));
    }
  }
}

TEST_CASE("steps that begin alike share their ops") {
  const Program p = build_program(small(test::llama2_7b(), 4), 1000);
  REQUIRE(p.steps.size() == 1000);
  CHECK_FALSE(p.steps[0] == p.steps[1]);  // optimizer state, execution order and limiter queue come to be
  CHECK(p.steps[1] == p.steps[2]);
  CHECK(p.steps[1] == p.steps[999]);
  CHECK(p.ops.size() == p.steps[1].end);
  CHECK(build_program(small(test::llama2_7b(), 4), 2).ops == p.ops);  // pure: the same question has the same answer
}

}  // namespace
}  // namespace stepcast::program
