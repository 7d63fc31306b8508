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

TEST_CASE("without any one of its waits a ZeRO step is not proven clean, but for those that others imply") {
  const auto planted = [](StepSpec spec, auto implied) {
    const Program clean = build_program(spec, 3);
    REQUIRE(check(clean).empty());
    int tried = 0;
    for (std::uint32_t i = clean.steps.back().begin; i < clean.steps.back().end; ++i) {
      const Op& op = clean.ops[i];
      const bool waits = op.kind == OpKind::wait || (op.kind == OpKind::host_wait && op.count == static_cast<std::uint32_t>(WaitReason::synchronize));
      if (!waits || implied(clean, i)) continue;
      Program broken = clean;
      broken.ops[i] = {.kind = OpKind::host_work};
      ++tried;
      CHECK_MESSAGE(!check(broken).empty(), describe(clean, {i, 2, kNoOp, 0}));
    }
    return tried;
  };
  StepSpec spec = small_spec(Framework::zero2, false);
  spec.batch.grad_accum = 1;
  spec.policy.overlap_comm = true;
  spec.policy.reduce_bucket_size = 300'000;
  // The host's wait for the device is behind compute's for the last reduction. Compute's first wait for the reductions finds none, the last is implied by the one at the end.
  const Program zero2 = build_program(spec, 3);
  const auto is_reduction = [](const Program& p, std::uint32_t i) {
    return p.ops[i].kind == OpKind::wait && p.ops[i].stream == Stream::compute && p.events[p.ops[i].id].label == "tail of all_reduce";
  };
  std::vector<std::uint32_t> compute_waits;
  for (std::uint32_t i = zero2.steps.back().begin; i < zero2.steps.back().end; ++i) {
    if (is_reduction(zero2, i)) compute_waits.push_back(i);
  }
  REQUIRE(compute_waits.size() > 3);
  CHECK(planted(spec, [&](const Program& p, std::uint32_t i) {
          return p.ops[i].kind == OpKind::host_wait || i == compute_waits.front() || i == compute_waits[compute_waits.size() - 2];
        }) > 20);
  spec.policy.framework = Framework::zero3;
  spec.policy.stage3_prefetch_bucket_size = 300'000;
  spec.policy.stage3_param_persistence_threshold = 1000;
  const Program zero3 = build_program(spec, 3);
  std::uint32_t last_gather = 0;
  for (std::uint32_t i = zero3.steps.back().begin; i < zero3.steps.back().end; ++i) {
    const Op& op = zero3.ops[i];
    if (op.kind == OpKind::wait && op.stream == Stream::compute && zero3.events[op.id].label == "tail of all_gather") last_gather = i;
  }
  // Compute waits at every module, in vain where no gather of the module was in flight or nothing was put on the stream since its last wait, and for the embedding, whose backward reads no weights. The first all-gather is behind the last of the step before on their communicator.
  CHECK(planted(spec, [&](const Program& p, std::uint32_t i) {
          const Op& op = p.ops[i];
          const bool module = op.stream == Stream::compute && p.events[op.id].label == "tail of all_gather";
          std::uint32_t last = i - 1;  // what compute last waited for, or the last thing on the stream since
          const auto gathers = [&](const Op& o) { return o.stream == Stream::all_gather && (o.kind == OpKind::launch || o.kind == OpKind::collective); };
          const auto waited = [&](const Op& o) { return o.kind == OpKind::wait && o.stream == Stream::compute && o.id == op.id; };
          while (module && last > 0 && !gathers(p.ops[last]) && !waited(p.ops[last])) --last;
          const bool finishes = p.ops[i - 2].kind == OpKind::record && p.events[p.ops[i - 2].id].label.starts_with("fetched");
          const bool in_vain = module && (waited(p.ops[last]) || !finishes);
          const bool embedding = i == last_gather;
          return in_vain || embedding || (op.stream == Stream::all_gather && p.events[op.id].label == "tail of compute");
        }) > 20);
}
