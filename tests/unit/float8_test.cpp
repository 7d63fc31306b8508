// Products in fp8 and tf32, and the scaling of fp16 losses: kernels, bytes and products of a block against hand sums; gathers in fp8; what is refused.
// Follows torchao's Float8Linear and Transformer Engine's Linear; docs/kernels.md, "fp8".
#include "program/blocks/float8.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string_view>

#include "program/build.hpp"
#include "program/check.hpp"
#include "program/model.hpp"
#include "program/validate.hpp"
#include "tests/support/block_tally.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using test::kFfn, test::kHidden, test::kTf, test::kTh, test::kTokens;
constexpr double kWeights = 4 * kHidden * kHidden + 3 * kHidden * kFfn;

using test::BlockTally, test::saved_per_token, test::tally, test::two_blocks;

StepSpec llama(KernelSet set, Matmul matmul) {
  StepSpec spec = two_blocks(test::llama2_7b());
  spec.kernels.set = set;
  spec.precision.matmul = matmul;
  return spec;
}

BlockTally more(const StepSpec& with) {
  StepSpec without = with;
  without.precision.matmul = Matmul::param;
  without.precision.fp8_all_gather = false;
  const BlockTally a = tally(with), b = tally(without);
  return {{a.forward.launches - b.forward.launches, a.forward.further, a.forward.gemms - b.forward.gemms, 0, 0, 0, a.forward.bytes - b.forward.bytes},
          {},
          {a.backward.launches - b.backward.launches, a.backward.further, a.backward.gemms - b.backward.gemms, 0, 0, 0, a.backward.bytes - b.backward.bytes}};
}

std::multiset<hw::Dtype> products(const StepSpec& spec) {
  const Program p = build_program(spec, 1);
  std::multiset<hw::Dtype> types;
  for (const Op& op : p.slice(p.steps[0])) {
    if (op.kind == OpKind::launch && p.kernels[op.id].shape.kind == hw::KernelKind::gemm) types.insert(p.kernels[op.id].shape.dtype);
  }
  return types;
}

TEST_CASE("tensorwise, eager: a maximum and a cast of each input and weight; in the backward of the gradient, the input and the weight") {
  const BlockTally t = more(llama(KernelSet::pytorch_eager, Matmul::fp8_tensorwise));
  CHECK(t.forward.gemms == 0);
  CHECK(t.forward.launches == 7 * 4);
  // inputs: 6 of width h and one of width f; each element is read for its maximum (2 bytes), read for its cast (2), written (1)
  CHECK(t.forward.bytes == doctest::Approx(5 * (6 * kTh + kTf + kWeights)).epsilon(1e-6));
  CHECK(t.backward.launches == 7 * 6);
  // gradients: q, k, v, out and down of width h, gate and up of width f; both layouts: 2 + 2 + 2 bytes
  CHECK(t.backward.bytes == doctest::Approx(6 * (5 * kTh + 2 * kTf) + 5 * (6 * kTh + kTf + kWeights)).epsilon(1e-6));
}

TEST_CASE("tensorwise, compiled: maxima ride in the kernels that wrote the tensors, and layers that share an input share its cast") {
  const BlockTally t = more(llama(KernelSet::pytorch_compile, Matmul::fp8_tensorwise));
  // casts of 4 tensors (q, k and v share one, gate and up another), maximum and cast of 7 weights
  CHECK(t.forward.launches == 4 + 14);
  CHECK(t.forward.bytes == doctest::Approx(3 * (3 * kTh + kTf) + 5 * kWeights).epsilon(1e-6));
  CHECK(t.backward.launches == 7 + 4 + 14);
  CHECK(t.backward.bytes == doctest::Approx(4 * (5 * kTh + 2 * kTf) + 3 * (3 * kTh + kTf) + 5 * kWeights).epsilon(1e-6));
}

TEST_CASE("delayed: one pass writes both layouts, and the backward finds them in 8 bits") {
  const StepSpec spec = llama(KernelSet::pytorch_eager, Matmul::fp8_delayed);
  const BlockTally t = more(spec);
  CHECK(t.forward.launches == 14);
  CHECK(t.forward.bytes == doctest::Approx(4 * (6 * kTh + kTf + kWeights)).epsilon(1e-6));
  CHECK(t.backward.launches == 7);
  CHECK(t.backward.bytes == doctest::Approx(4 * (5 * kTh + 2 * kTf)).epsilon(1e-6));
  // In place of 2 bytes of the norms' outputs (2 h) and of the gated product (f): 1 byte of each input. Flash attention's output stays saved for its own backward, so
  // the out projection's input comes on top. The transposed weights are kept for the backward.
  const double saved = saved_per_token(spec, 1) - saved_per_token(llama(KernelSet::pytorch_eager, Matmul::param), 1);
  CHECK(saved == doctest::Approx(-2 * (2 * kHidden + kFfn) + (6 * kHidden + kFfn) + kWeights / kTokens).epsilon(1e-6));
}

TEST_CASE("rowwise, compiled: a row's scale rides in its cast; along the columns maxima take a pass of their own") {
  const StepSpec spec = llama(KernelSet::pytorch_compile, Matmul::fp8_rowwise);
  const BlockTally t = more(spec);
  // 4 inputs (q, k and v share one, gate and up another) and 7 weights, one kernel each: 2 + 1 bytes and 4 of each row's scale
  CHECK(t.forward.launches == 4 + 7);
  CHECK(t.forward.bytes == doctest::Approx(3 * (3 * kTh + kTf + kWeights) + 4 * (4 * kTokens + 5 * kHidden + 2 * kFfn)).epsilon(1e-6));
  // gradients of 7 layers: rows (1 kernel) and columns (2); inputs and weights along the columns (2 each), which read twice
  CHECK(t.backward.launches == 7 * 3 + 4 * 2 + 7 * 2);
  CHECK(t.backward.bytes == doctest::Approx((3 + 5) * (5 * kTh + 2 * kTf) + 5 * (3 * kTh + kTf) + 5 * kWeights).epsilon(2e-3));
  CHECK(saved_per_token(spec, 1) == doctest::Approx(saved_per_token(llama(KernelSet::pytorch_compile, Matmul::param), 1)));
}

TEST_CASE("rowwise, eager: a maximum and a cast for each, as for one scale") {
  const BlockTally t = more(llama(KernelSet::pytorch_eager, Matmul::fp8_rowwise));
  CHECK(t.forward.launches == 7 * 4);
  CHECK(t.backward.launches == 7 * 4 + 7 * 2 + 7 * 2);
}

TEST_CASE("blockwise: one pass for both layouts with a scale for 128 elements, of a weight for 128 x 128; 8 bits are kept") {
  const BlockTally t = more(llama(KernelSet::pytorch_eager, Matmul::fp8_blockwise));
  CHECK(t.forward.launches == 14);
  const double inputs = 6 * kTh + kTf;
  CHECK(t.forward.bytes == doctest::Approx(4 * (inputs + kWeights) + 2 * 4 * (inputs / 128 + kWeights / (128 * 128))).epsilon(1e-6));
  CHECK(t.backward.launches == 7);
  StepSpec odd = llama(KernelSet::pytorch_eager, Matmul::fp8_blockwise);
  odd.batch.seq_len = 4096 + 16;
  REQUIRE(broken_rule(odd));
  CHECK(std::string_view(broken_rule(odd)->key) == "/precision/matmul");
}

TEST_CASE("the head multiplies in 16 bits; tf32 takes every product") {
  // 7 layers forward, 14 products backward, two blocks; the head's three
  const auto fp8 = products(llama(KernelSet::pytorch_eager, Matmul::fp8_tensorwise));
  CHECK(fp8.count(hw::Dtype::fp8) == 42);
  CHECK(fp8.count(hw::Dtype::bf16) == 3);
  StepSpec spec = llama(KernelSet::pytorch_eager, Matmul::tf32);
  spec.precision = {hw::Dtype::fp32, hw::Dtype::fp32, hw::Dtype::fp32, Matmul::tf32};
  spec.kernels.attention = Attention::unfused;
  CHECK(products(spec).count(hw::Dtype::tf32) == 45 + 2 * 6);
  CHECK(products(spec).size() == 57);
}

TEST_CASE("gathered in fp8: the blocks' weights at one byte, norms at two; scales of the next step after the optimizer") {
  StepSpec spec = llama(KernelSet::pytorch_compile, Matmul::fp8_tensorwise);
  spec.policy.framework = Framework::fsdp2;
  spec.precision.fp8_all_gather = true;
  const Program p = build_program(spec, 2);
  CHECK(check(p).empty());
  std::int64_t block = 0, maxima = 0;
  for (const CollectiveEntry& c : p.collectives) {
    if (c.label == "all_gather block") block = c.shape.bytes;
    if (c.label == "all_reduce float8 maxima") maxima = c.shape.bytes;
  }
  CHECK(block == static_cast<std::int64_t>(kWeights) + 2 * 2 * 4096);
  CHECK(maxima == 4 * 2 * 7);
  // compiled, forward: no maximum and no cast of weights; the backward copies each into the other layout, 1 + 1 bytes
  const BlockTally t = more(spec);
  CHECK(t.forward.launches == 4);
  CHECK(t.backward.launches == 7 + 4 + 7);
}

TEST_CASE("what fp8, tf32 and the scaler need") {
  const auto key = [](auto change) {
    StepSpec spec = llama(KernelSet::pytorch_eager, Matmul::fp8_tensorwise);
    change(spec);
    const auto broken = broken_rule(spec);
    return std::string(broken ? broken->key : "");
  };
  CHECK(key([](StepSpec&) {}).empty());
  CHECK(key([](StepSpec& s) { s.precision.param = hw::Dtype::fp16; }) == "/precision/matmul");
  CHECK(key([](StepSpec& s) { s.model.ffn = 11000; }) == "/precision/matmul");
  CHECK(key([](StepSpec& s) { s.model.experts = 4, s.model.active_experts = 2; }).empty());
  CHECK(key([](StepSpec& s) { s.model.experts = 4, s.model.active_experts = 2, s.precision.matmul = Matmul::fp8_blockwise; }) == "/precision/matmul");
  CHECK(key([](StepSpec& s) { s.precision.matmul = Matmul::tf32; }) == "/precision/matmul");
  CHECK(key([](StepSpec& s) { s.precision.fp8_all_gather = true; }) == "/precision/fp8_all_gather");
  CHECK(key([](StepSpec& s) { s.precision.fp8_all_gather = true, s.policy.framework = Framework::fsdp2; }).empty());
  CHECK(key([](StepSpec& s) { s.precision.matmul = Matmul::param, s.precision.fp8_all_gather = true, s.policy.framework = Framework::fsdp2; }) ==
        "/precision/fp8_all_gather");
  CHECK(key([](StepSpec& s) { s.precision.matmul = Matmul::param, s.precision.grad_scaler = true; }) == "/precision/grad_scaler");
  CHECK(key([](StepSpec& s) { s.precision = {hw::Dtype::fp16, hw::Dtype::fp16, hw::Dtype::fp32, Matmul::param, false, true}; }).empty());
}

TEST_CASE("experts: each linear layer of each expert casts its own tokens and weights; the product that sums over tokens reads padded copies of 8 bits") {
  // 4096 tokens, 3 of 8 experts for each: 1536 rows an expert; 4094 tokens would be 1535 or 1536
  ModelShape model = test::mixtral_8x7b();
  model.active_experts = 3;
  constexpr double kRows = 1536, kCopies = 8, kWide = 14336, kKvWidth = 1024;
  const auto more_of = [&](KernelSet set) {
    StepSpec spec = two_blocks(model);
    spec.kernels.set = set;
    spec.precision.matmul = Matmul::fp8_tensorwise;
    CHECK(check(build_program(spec, 2)).empty());
    return more(spec);
  };
  const double attention = 2 * kHidden * (kHidden + kKvWidth), network = 3 * kHidden * kWide;  // weights
  const BlockTally eager = more_of(KernelSet::pytorch_eager);
  CHECK(eager.forward.gemms == 0);
  CHECK(eager.forward.launches == 4 * (4 + kCopies * 3));
  CHECK(eager.forward.bytes == doctest::Approx(5 * (4 * kTh + attention + kCopies * (kRows * (2 * kHidden + kWide) + network))).epsilon(1e-6));
  CHECK(eager.backward.launches == 6 * (4 + kCopies * 3) + kCopies * 3 * 2);
  const double casts = 6 * (2 * kTh + 2 * kTokens * kKvWidth) + 5 * (4 * kTh + attention) +
                       kCopies * (6 * kRows * (kHidden + 2 * kWide) + 5 * (kRows * (2 * kHidden + kWide) + network));
  const double padding = kCopies * 2 * kRows * 3 * (kHidden + kWide);  // read and written: the gradient and the input of each layer
  CHECK(eager.backward.bytes == doctest::Approx(casts + padding).epsilon(1e-6));
  const BlockTally compiled = more_of(KernelSet::pytorch_compile);
  CHECK(compiled.forward.launches == 2 + 2 * 4 + kCopies * (2 + 2 * 3));  // q, k and v share a cast, and so do gate and up
}

TEST_CASE("experts: rows that are no multiple of 16 are summed over as if they were") {
  StepSpec spec = two_blocks(test::mixtral_8x7b());
  spec.batch.micro_batch = 1, spec.batch.seq_len = 4112;  // 2 x 4112 / 8 = 1028 rows
  spec.precision.matmul = Matmul::fp8_rowwise;
  const Program p = build_program(spec, 1);
  std::set<std::int64_t> depths;
  for (const KernelEntry& kernel : p.kernels) {
    if (kernel.op.starts_with("_scaled_mm backward weight expert")) depths.insert(kernel.shape.k);
  }
  CHECK(depths == std::set<std::int64_t>{1040});
}

TEST_CASE("fp16's scaler: a pass over the gradients, the finding of all ranks, and the host waits for it unless the optimizer is fused") {
  const auto count = [](OptimizerImpl implementation, bool scaler) {
    StepSpec spec = two_blocks(test::llama2_7b());
    spec.precision = {hw::Dtype::fp16, hw::Dtype::fp16, hw::Dtype::fp32, Matmul::param, false, scaler};
    spec.optimizer.implementation = implementation;
    const Program p = build_program(spec, 2);
    CHECK(check(p).empty());
    struct {
      int waits = 0, reductions = 0;
      double bytes = 0;
    } result;
    for (const Op& op : p.slice(p.steps[1])) {
      if (op.kind == OpKind::host_wait && op.count == static_cast<std::uint32_t>(WaitReason::synchronize)) ++result.waits;
      if (op.kind == OpKind::collective && p.collectives[op.id].label == "all_reduce overflow") ++result.reductions;
      if (op.kind == OpKind::launch && p.kernels[op.id].op.find("unscale") != std::string::npos) result.bytes += hw::dram_bytes(p.kernels[op.id].shape).si();
    }
    return result;
  };
  const auto with = count(OptimizerImpl::foreach, true);
  CHECK(with.waits == 1);
  CHECK(with.reductions == 1);
  const ModelShape model = two_blocks(test::llama2_7b()).model;
  CHECK(with.bytes == 8.0 * static_cast<double>(parameters(model)) / 32);  // fp32 gradients of this rank, read and written
  CHECK(count(OptimizerImpl::fused, true).waits == 0);
  CHECK(count(OptimizerImpl::foreach, false).waits == 0);
  CHECK(count(OptimizerImpl::foreach, false).reductions == 0);
}

}  // namespace
}  // namespace stepcast::program
