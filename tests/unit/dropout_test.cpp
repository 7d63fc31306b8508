// Dropout, Megatron's fused kernels and training metrics against hand sums: T h and S = scores (T a s) elements of two bytes, masks of one.
#include "program/blocks/dropout.hpp"

#include <doctest/doctest.h>

#include "program/build.hpp"
#include "tests/support/block_tally.hpp"
#include "tests/support/ledger.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using test::BlockTally, test::tally, test::two_blocks;

using test::kHeads, test::kTh, test::kTokens;
constexpr double kScores = kTokens * kHeads * 4096;

/// A GPT block with unfused attention; sequences of 4096.
StepSpec gpt_block() {
  StepSpec spec = two_blocks(test::mpt_7b());
  spec.kernels.attention = Attention::unfused;
  return spec;
}

double bytes_added(const test::Tally& with, const test::Tally& without) { return with.bytes - without.bytes; }

TEST_CASE("dropout of attention: a kernel each way, five bytes per score; its mask and its result are saved") {
  StepSpec spec = gpt_block();
  const BlockTally plain = tally(spec);
  const double saved = test::saved_per_token(spec, 0);
  spec.model.attention_dropout = true;
  const BlockTally dropped = tally(spec);
  CHECK(dropped.forward.kernels() == plain.forward.kernels() + 1);
  CHECK(dropped.backward.kernels() == plain.backward.kernels() + 1);
  CHECK(bytes_added(dropped.forward, plain.forward) == (2 + 2 + 1) * kScores);
  CHECK(bytes_added(dropped.backward, plain.backward) == (2 + 1 + 2) * kScores);
  CHECK(test::saved_per_token(spec, 0) - saved == (2 + 1) * kHeads * 4096);
}

TEST_CASE("dropout of hidden states: behind attention, feed-forward and embedding") {
  StepSpec spec = gpt_block();
  const BlockTally plain = tally(spec);
  const double saved = test::saved_per_token(spec, 0);
  spec.model.hidden_dropout = true;
  const BlockTally dropped = tally(spec);
  CHECK(dropped.forward.kernels() == plain.forward.kernels() + 2);
  CHECK(dropped.backward.kernels() == plain.backward.kernels() + 2);
  CHECK(bytes_added(dropped.forward, plain.forward) == 2 * (2 + 2 + 1) * kTh);
  CHECK(bytes_added(dropped.backward, plain.backward) == 2 * (2 + 1 + 2) * kTh);
  CHECK(test::saved_per_token(spec, 0) - saved == 2 * 4096);
}

TEST_CASE("Megatron: 14 kernels forward and 28 backward; softmax with scale and mask is one, dropout and residual are one") {
  StepSpec spec = gpt_block();
  spec.model.attention_dropout = spec.model.hidden_dropout = true;
  const BlockTally eager = tally(spec);
  spec.kernels.set = KernelSet::megatron;
  const BlockTally t = tally(spec);
  CHECK(t.forward.kernels() == 14);
  CHECK(t.backward.kernels() == 28);
  CHECK(t.forward.gemm_flops == eager.forward.gemm_flops);
  // Two norms of 4 Th, softmax 4 S, dropout 5 S, the copy of the attention's output 4 Th, two additions with dropout of 7 Th, GELU 4 x 4 Th. Row statistics add less than 0.1 %.
  CHECK(t.forward.bytes == doctest::Approx((8 + 4 + 14 + 16) * kTh + 9 * kScores).epsilon(0.001));
}

TEST_CASE("Megatron's ops have a host price of their own") {
  StepSpec spec = gpt_block();
  spec.kernels.set = KernelSet::megatron;
  int forward = 0, backward = 0;
  for (const Op& op : build_program(spec, 1).ops) {
    if (op.kind != OpKind::launch) continue;
    forward += op.work == hw::HostWork::op_megatron_forward, backward += op.work == hw::HostWork::op_megatron_backward;
  }
  CHECK(forward > 2 * 13);
  CHECK(backward > 2 * 25);
}

TEST_CASE("training metrics: after the backward, ten bytes of traffic and six held per logit and metric, beside the two of the logits") {
  StepSpec spec = test::reference_step(test::llama2_7b());
  spec.kernels.keep_logits = true;
  spec.kernels.loss = Loss::fused;
  const std::int64_t logits = 4096 * 32000;
  const auto traffic = [&](std::int64_t metrics) {
    spec.kernels.train_metrics = metrics;
    double bytes = 0;
    const Program p = build_program(spec, 1);
    for (const Op& op : p.ops) {
      if (op.kind == OpKind::launch) bytes += static_cast<double>(p.kernels[op.id].shape.read_bytes + p.kernels[op.id].shape.write_bytes);
    }
    return bytes;
  };
  const double none = traffic(0);
  CHECK((traffic(1) - none) / logits == doctest::Approx(10).epsilon(1e-3));
  CHECK((traffic(2) - none) / logits == doctest::Approx(20).epsilon(1e-3));
  test::Ledger l = test::ledger(build_program(spec, 2));
  CHECK(test::of(l.at_end["backward"], Owner::loss) == 0);
  CHECK(test::of(l.peak["backward"], Owner::loss) == 8 * logits + 4);
}

TEST_CASE("timers around each phase: the host waits once behind each forward and each backward") {
  StepSpec spec = test::reference_step(test::llama2_7b());
  spec.batch.grad_accum = 3;
  const auto waits = [&] {
    int count = 0;
    for (const Op& op : build_program(spec, 1).ops) count += op.kind == OpKind::host_wait && op.count == static_cast<std::uint32_t>(WaitReason::synchronize);
    return count;
  };
  const int before = waits();
  spec.sync_each_phase = true;
  CHECK(waits() == before + 2 * 3);
}

}  // namespace
}  // namespace stepcast::program
