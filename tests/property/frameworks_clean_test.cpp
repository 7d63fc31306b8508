// Programs of FSDP2 and DDP under many combinations of settings: the checker finds no race, no leak, no use after free.
#include <doctest/doctest.h>

#include "program/build.hpp"
#include "program/check.hpp"
#include "tests/support/specs.hpp"

using namespace stepcast;
using namespace stepcast::program;

namespace {

/// Two to four blocks on 2 x 4 ranks.
StepSpec small_spec(Framework framework, bool gpt) {
  StepSpec spec;
  spec.model = gpt ? program::test::gpt(256, 3, 4, 1000, 128, true) : program::test::llama2_7b();
  if (!gpt)
    spec.model.hidden = 256, spec.model.layers = 3, spec.model.heads = spec.model.kv_heads = 4, spec.model.head_dim = 64, spec.model.ffn = 704,
    spec.model.vocab = 1000;
  spec.batch = {.micro_batch = 1, .grad_accum = 2, .seq_len = 128};
  spec.policy.framework = framework;
  spec.world = {4, 2};
  return spec;
}

void expect_clean(const StepSpec& spec) {
  const auto findings = check(build_program(spec, 4));
  CHECK_MESSAGE(findings.empty(), (findings.empty() ? std::string() : findings.front().text));
}

constexpr hw::Dtype kBf16 = hw::Dtype::bf16, kFp32 = hw::Dtype::fp32, kFp16 = hw::Dtype::fp16;
const Precision kPrecisions[] = {{kBf16, kBf16, kFp32}, {kBf16, kFp32, kFp32}, {kBf16, kBf16, kBf16}, {kFp32, kFp32, kFp32}, {kFp16, kFp16, kFp32}};

template <class Visit>
void each_fsdp2(Visit visit) {
  int number = 0;
  for (const auto& precision : kPrecisions)
    for (const std::int64_t reshard : {0, 1, 2, 4})
      for (const auto wrap : {Wrap::blocks, Wrap::embedding_and_head, Wrap::model})
        for (const bool no_sync : {false, true})
          for (const bool hybrid : {false, true}) {
            ++number;
            const bool gpt = number % 3 == 0 && wrap != Wrap::embedding_and_head;  // its embeddings are tied
            StepSpec spec = small_spec(Framework::fsdp2, gpt);
            if (hybrid && reshard == 4) continue;
            spec.precision = precision;
            spec.policy.sharding = hybrid ? Sharding::hybrid_shard : Sharding::full_shard;
            spec.policy.reshard_after_forward = reshard;
            spec.policy.wrap = wrap;
            spec.policy.no_sync = no_sync;
            spec.policy.forward_prefetch_depth = number % 3;
            spec.policy.backward_prefetch_depth = 1 + number % 2;
            spec.policy.unshard_embedding_in_backward = wrap != Wrap::embedding_and_head || number % 2 == 0;
            spec.recompute.mode = number % 4 == 0 ? RecomputeMode::full : RecomputeMode::none;
            spec.optimizer.implementation = static_cast<OptimizerImpl>(number % 3);
            spec.optimizer.zero_grad_set_to_none = number % 5 != 0;
            visit(spec);
          }
}

}  // namespace

TEST_CASE("FSDP2 is clean in every combination of precision, resharding, wrapping, accumulation and hybrid sharding") { each_fsdp2(expect_clean); }

TEST_CASE("FSDP2 with positions left to the root, and on one rank") {
  StepSpec spec = small_spec(Framework::fsdp2, true);
  spec.model.tied_embeddings = false;
  spec.policy.wrap = Wrap::embedding_and_head;
  expect_clean(spec);
  spec.world = {1, 1};
  expect_clean(spec);
  spec.policy.wrap = Wrap::blocks;
  spec.precision = {kFp32, kFp32, kFp32};
  expect_clean(spec);
}

TEST_CASE("DDP is clean in every combination of precision, buckets, views, accumulation and recomputation") {
  for (const auto& precision : kPrecisions)
    for (const bool view : {false, true})
      for (const bool no_sync : {false, true})
        for (const bool gpt : {false, true})
          for (const bool recompute : {false, true})
            for (const std::int64_t cap : {0, 1, 300'000}) {
              StepSpec spec = small_spec(Framework::ddp, gpt);
              spec.precision = precision;
              spec.precision.reduce = precision.master;
              spec.policy.gradient_as_bucket_view = view;
              spec.policy.no_sync = no_sync;
              if (cap > 0) spec.policy.bucket_cap = cap;
              spec.recompute.mode = recompute ? RecomputeMode::full : RecomputeMode::none;
              expect_clean(spec);
            }
}

TEST_CASE("without any one of its waits an FSDP2 step is not proven clean, but for those that others imply") {
  StepSpec spec = small_spec(Framework::fsdp2, false);
  spec.batch.grad_accum = 1;
  const Program clean = build_program(spec, 3);
  int planted = 0, found = 0;
  for (std::uint32_t i = clean.steps.back().begin; i < clean.steps.back().end; ++i) {
    const Op& op = clean.ops[i];
    if (op.kind != OpKind::wait) continue;
    // A staging buffer's memory belongs to the copy-in stream: the all-gather's stream waits for that stream anyway. Compute waits for the last reduction of all.
    const std::string& event = clean.events[op.id].label;
    std::uint32_t next = i + 1;  // a wait after which the stream does nothing before it waits for something later
    while (next < clean.steps.back().end && (clean.ops[next].stream != op.stream || clean.ops[next].kind == OpKind::record)) ++next;
    const bool idle = op.stream == Stream::copy_in && (next == clean.steps.back().end || clean.ops[next].kind == OpKind::wait);
    const bool implied =
        idle || (op.stream == Stream::all_gather && event != "tail of copy_in") || event.starts_with("reduced(") || event.starts_with("reduce-scattered(");
    if (implied) continue;
    Program broken = clean;
    broken.ops[i] = {.kind = OpKind::host_work};
    ++planted;
    const bool finds = !check(broken).empty();
    found += finds ? 1 : 0;
    CHECK_MESSAGE(finds, describe(clean, {i, 2, kNoOp, 0}));
  }
  CHECK(planted > 20);
  CHECK(found == planted);
}
