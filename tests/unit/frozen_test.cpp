// Parts of a model that are not trained (/model/frozen): no backward behind a frozen embedding, input gradients alone elsewhere, gathers, reductions and state of what is
// trained. Follows requires_grad_(False) under PyTorch's autograd and each framework; docs/kernels.md, "Frozen parts".
#include <doctest/doctest.h>

#include "program/build.hpp"
#include "program/check.hpp"
#include "program/count.hpp"
#include "program/model.hpp"
#include "program/validate.hpp"
#include "tests/support/block_tally.hpp"

namespace stepcast::program {
namespace {

using test::saved_per_token, test::tally;

using test::kFfn, test::kHeads, test::kHidden;

/// Four blocks, of which the first `blocks` are frozen.
StepSpec llama(Framework framework, std::int64_t blocks, bool embedding) {
  StepSpec spec = test::reference_step();
  spec.model.layers = 4;
  spec.policy.framework = framework;
  if (framework == Framework::ddp) spec.precision.reduce = spec.precision.master;
  spec.model.frozen_blocks = blocks;
  spec.model.frozen_embedding = embedding;
  spec.policy.use_orig_params = framework == Framework::fsdp1;
  return spec;
}

struct Collectives {
  int gathers = 0, reductions = 0;
};

Collectives count_collectives(const StepSpec& spec) {
  const Program p = build_program(spec, 2);
  Collectives result;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind != OpKind::collective) continue;
    const hw::CollectiveKind kind = p.collectives[op.id].shape.kind;
    result.gathers += kind == hw::CollectiveKind::all_gather ? 1 : 0;
    result.reductions += kind == hw::CollectiveKind::reduce_scatter ? 1 : 0;
  }
  return result;
}

TEST_CASE("behind a trained embedding frozen blocks have the input gradients of a backward, and save what those need") {
  const StepSpec spec = llama(Framework::fsdp1, 2, false);
  const auto frozen = tally(spec, 1), trained = tally(spec, 2);
  CHECK(frozen.forward.kernels() == trained.forward.kernels());
  CHECK(frozen.backward.gemms == 7);
  CHECK(trained.backward.gemms == 14);
  CHECK(frozen.backward.kernels() == 75 - 7 - 4);  // less 7 weight gradients and two kernels of each norm
  // of Llama's 24 h + 8 f what weight gradients alone read is not kept: outputs and normalised inputs of both norms (8 h), the gated product (2 f)
  CHECK(saved_per_token(spec, 1) == 16 * kHidden + 6 * kFfn + 4 * kHeads + 8);
}

TEST_CASE("behind a frozen embedding they have no backward at all and save nothing") {
  const StepSpec spec = llama(Framework::fsdp2, 2, true);
  CHECK(tally(spec, 1).backward.kernels() == 0);
  CHECK(tally(spec, 1).forward.kernels() == tally(spec, 2).forward.kernels());
  CHECK(tally(spec, 2).backward.gemms == 14);
  CHECK(saved_per_token(spec, 0) == 0);
}

TEST_CASE("no gradient passes, no gather: FSDP1 leaves the frozen blocks alone; FSDP2 prefetches one of them in vain") {
  // root and 4 blocks forward; FSDP1: 2 blocks again for the backward, whose reductions and the root's remain
  const Collectives one = count_collectives(llama(Framework::fsdp1, 2, true));
  CHECK(one.gathers == 1 + 4 + 2);
  CHECK(one.reductions == 2 + 1);
  const Collectives two = count_collectives(llama(Framework::fsdp2, 2, true));
  CHECK(two.gathers == 1 + 4 + 3);
  CHECK(two.reductions == 2 + 1);
  // with input gradients all are gathered again, and two reduced
  const Collectives all = count_collectives(llama(Framework::fsdp1, 2, false));
  CHECK(all.gathers == 1 + 4 + 4);
  CHECK(all.reductions == 2 + 1);
}

TEST_CASE("clean in all frameworks, with accumulation, recomputation and offload") {
  for (const Framework framework : {Framework::fsdp1, Framework::fsdp2, Framework::ddp, Framework::zero1, Framework::zero2, Framework::zero3}) {
    for (const bool embedding : {false, true}) {
      for (const std::int64_t blocks : {0, 2, 4}) {
        for (const RecomputeMode mode : {RecomputeMode::none, RecomputeMode::full}) {
          StepSpec spec = llama(framework, blocks, embedding);
          spec.recompute.mode = mode;
          spec.batch.grad_accum = 2;
          spec.policy.no_sync = mode == RecomputeMode::full && !is_zero(framework);
          spec.model.frozen_head = !embedding;
          if (blocks == 4 && embedding) spec.model.frozen_head = false;
          CAPTURE(static_cast<int>(framework));
          CAPTURE(blocks);
          CAPTURE(embedding);
          const auto findings = check(build_program(spec, 3));
          CHECK_MESSAGE(findings.empty(), (findings.empty() ? "" : findings.front().text));
        }
      }
    }
  }
}

TEST_CASE("the optimizer holds what is trained") {
  for (const Framework framework : {Framework::fsdp1, Framework::fsdp2, Framework::ddp, Framework::zero2, Framework::zero3}) {
    const StepSpec spec = llama(framework, 2, true);
    const Program p = build_program(spec, 2);
    std::int64_t state = 0;
    for (const BufferEntry& buffer : p.buffers) state += buffer.label.ends_with("exp_avg") ? buffer.bytes : 0;
    const std::int64_t trained = 2 * parameters_per_block(spec.model) + root_parameters(spec.model) - spec.model.vocab * spec.model.hidden;
    CHECK(trained == trained_parameters(spec.model));
    CHECK(state == doctest::Approx(4.0 * static_cast<double>(trained) / (framework == Framework::ddp ? 1 : 32)).epsilon(1e-3));
  }
}

TEST_CASE("model FLOPs: two a parameter of blocks without a backward, four of frozen ones with input gradients") {
  const auto flops = [](const ModelShape& m) { return model_flops_per_token(m, matmul_parameters(m), 4096, FlopsConvention::six_p).si(); };
  const ModelShape whole = llama(Framework::fsdp2, 0, false).model;
  const double block = static_cast<double>(parameters_per_block(whole));
  CHECK(flops(whole) - flops(llama(Framework::fsdp2, 2, false).model) == 2 * 2 * block);
  CHECK(flops(whole) - flops(llama(Framework::fsdp2, 2, true).model) == 2 * 4 * block);
}

TEST_CASE("what cannot be frozen") {
  const auto key = [](auto change) {
    StepSpec spec = llama(Framework::fsdp1, 2, true);
    change(spec);
    const auto broken = broken_rule(spec);
    return std::string(broken ? broken->key : "");
  };
  CHECK(key([](StepSpec&) {}).empty());
  CHECK(key([](StepSpec& s) { s.policy.use_orig_params = false; }) == "/model/frozen");  // embedding and head share the root's flat parameter
  CHECK(key([](StepSpec& s) { s.policy.use_orig_params = false, s.policy.wrap = Wrap::embedding_and_head; }).empty());
  CHECK(key([](StepSpec& s) { s.model.frozen_blocks = 5; }) == "/model/frozen/blocks");
  CHECK(key([](StepSpec& s) { s.model.frozen_blocks = 4, s.model.frozen_head = true; }) == "/model/frozen");
  CHECK(key([](StepSpec& s) { s.model.tied_embeddings = true; }) == "/model/frozen");
  CHECK(key([](StepSpec& s) { s.model.lora_rank = 8; }) == "/model/frozen");
  CHECK(key([](StepSpec& s) { s.recompute.mode = RecomputeMode::full, s.recompute.reentrant = true; }) == "/recompute/reentrant");
}

}  // namespace
}  // namespace stepcast::program
