// Faults planted in the programs that the builder makes, one at a time: the checker must find each. docs/check.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "program/build.hpp"
#include "program/check.hpp"

using namespace stepcast;
using namespace stepcast::program;

namespace {

/// A Llama of two blocks on 2 x 4 ranks.
StepSpec small_spec() {
  StepSpec spec;
  spec.model.hidden = 256;
  spec.model.layers = 2;
  spec.model.heads = spec.model.kv_heads = 4;
  spec.model.head_dim = 64;
  spec.model.ffn = 704;
  spec.model.vocab = 1000;
  spec.batch.seq_len = 128;
  spec.world = {4, 2};
  return spec;
}

bool finds(const std::vector<Finding>& findings, Fault fault) {
  return std::any_of(findings.begin(), findings.end(), [fault](const Finding& f) { return f.fault == fault; });
}

constexpr Op kNothing{.kind = OpKind::host_work};

std::uint32_t last_use(const Program& program, Range range, std::uint32_t before, std::uint32_t buffer) {
  for (std::uint32_t i = before; i-- > range.begin;) {
    const auto uses = program.operands_of(program.ops[i]);
    const bool device = program.ops[i].kind == OpKind::launch || program.ops[i].kind == OpKind::collective;
    if (device && std::any_of(uses.begin(), uses.end(), [&](const Operand& o) { return o.buffer == buffer; })) return i;
  }
  return kNoOp;
}

}  // namespace

TEST_CASE("the builder's programs are clean under every policy that it supports") {
  for (const auto prefetch : {BackwardPrefetch::pre, BackwardPrefetch::post, BackwardPrefetch::none}) {
    for (const bool forward_prefetch : {false, true}) {
      for (const bool limiter : {false, true}) {
        for (const auto sharding : {Sharding::full_shard, Sharding::shard_grad_op}) {
          for (const bool no_sync : {false, true}) {
            StepSpec spec = small_spec();
            spec.policy = {
                .sharding = sharding, .backward_prefetch = prefetch, .forward_prefetch = forward_prefetch, .limit_all_gathers = limiter, .no_sync = no_sync};
            spec.batch.grad_accum = 2;
            spec.recompute.mode = forward_prefetch ? RecomputeMode::full : RecomputeMode::none;
            const auto findings = check(build_program(spec, 4));
            CHECK_MESSAGE(findings.empty(), findings.front().text);
          }
        }
      }
    }
  }
}

TEST_CASE("without the wait for its all-gather, a unit's first kernel races with it") {
  const Program clean = build_program(small_spec(), 3);
  int planted = 0;
  for (std::uint32_t i = 2; i < clean.ops.size(); ++i) {
    // all_gather ... record, wait of compute: the wait that follows a gather, whatever bookkeeping stands between.
    const Op& op = clean.ops[i];
    if (op.kind != OpKind::wait || op.stream != Stream::compute) continue;
    std::uint32_t j = i;
    while (j-- > 0 && clean.ops[j].kind != OpKind::collective && clean.ops[j].kind != OpKind::launch) {}
    const bool after_gather = clean.ops[j].kind == OpKind::collective && clean.collectives[clean.ops[j].id].shape.kind == hw::CollectiveKind::all_gather;
    if (!after_gather || i - j > 12) continue;
    Program broken = clean;
    broken.ops[i] = kNothing;
    ++planted;
    CHECK_MESSAGE(finds(check(broken), Fault::race), describe(clean, {i, 0, kNoOp, 0}));
  }
  CHECK(planted >= 4);  // root and first block in the first step and in the steady one at the least
}

TEST_CASE("without the waits of the post-backward stream or of the final callback, gradients race") {
  const Program clean = build_program(small_spec(), 3);
  int planted = 0;
  for (std::uint32_t i = clean.steps.back().begin; i < clean.steps.back().end; ++i) {
    const Op& op = clean.ops[i];
    const bool of_post = op.kind == OpKind::wait && op.stream == Stream::post_backward;
    const bool final_callback = op.kind == OpKind::wait && op.stream == Stream::compute && i > 0 && clean.ops[i - 1].stream == Stream::post_backward;
    if (!of_post && !final_callback) continue;
    Program broken = clean;
    broken.ops[i] = kNothing;
    ++planted;
    CHECK_MESSAGE(finds(check(broken), Fault::race), describe(clean, {i, 2, kNoOp, 0}));
  }
  CHECK(planted == 4);  // two blocks, root, final callback
}

TEST_CASE("a free moved before the last use is a use after free; a free left out is a leak or a second alloc") {
  const Program clean = build_program(small_spec(), 3);
  const Range steady = clean.steps.back();
  int planted = 0;
  for (std::uint32_t i = steady.begin; i < steady.end; i += 1) {
    if (clean.ops[i].kind != OpKind::free) continue;
    const std::uint32_t use = last_use(clean, steady, i, clean.ops[i].id);
    if (use == kNoOp || ++planted % 5 != 0) continue;  // every fifth: the test stays quick
    Program early = clean;
    std::rotate(early.ops.begin() + use, early.ops.begin() + i, early.ops.begin() + i + 1);
    CHECK_MESSAGE(finds(check(early), Fault::use_after_free), describe(clean, {i, 2, kNoOp, 0}));
    Program never = clean;
    never.ops[i] = kNothing;
    CHECK_MESSAGE(!check(never).empty(), describe(clean, {i, 2, kNoOp, 0}));
  }
  CHECK(planted > 50);
}

TEST_CASE("two ranks with swapped collectives are found, and ranks with one program agree") {
  const Program clean = build_program(small_spec(), 2);
  Program swapped = clean;
  std::vector<std::uint32_t> collectives;
  for (std::uint32_t i = clean.steps[0].begin; i < clean.steps[0].end; ++i) {
    if (clean.ops[i].kind == OpKind::collective) collectives.push_back(i);
  }
  REQUIRE(collectives.size() > 4);
  for (std::size_t k = 0; k + 1 < collectives.size(); ++k) {
    const Op &a = clean.ops[collectives[k]], &b = clean.ops[collectives[k + 1]];
    if (clean.collectives[a.id].shape == clean.collectives[b.id].shape) continue;  // alike: no rank can tell
    swapped = clean;
    std::swap(swapped.ops[collectives[k]], swapped.ops[collectives[k + 1]]);
    const std::vector<Program> ranks = {clean, swapped};
    const auto findings = check_ranks(ranks);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].fault == Fault::collective_order);
    CHECK(findings[0].first.op == collectives[k]);
  }
  const std::vector<Program> alike = {clean, clean, clean};
  CHECK(check_ranks(alike).empty());
}
