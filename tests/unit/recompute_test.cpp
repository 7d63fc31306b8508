// Activation checkpointing: of every k-th block, of chosen kernels, and around the unit. What is kept, what runs again, and the collectives that it costs, by hand.
#include <doctest/doctest.h>

#include <map>

#include "hw_models/input_error.hpp"
#include "program/build.hpp"
#include "program/check.hpp"
#include "program/count.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using Words = std::vector<std::string>;

constexpr std::int64_t kTokens = 4096, kHidden = 4096, kFfn = 11008, kHeads = 32, kTh = kTokens * kHidden;

StepSpec spec_of(RecomputeMode mode, std::int64_t layers = 4) {
  StepSpec spec = test::reference_step();
  spec.model.layers = layers;
  spec.recompute.mode = mode;
  return spec;
}

StepSpec per_op(RecomputeOps ops, Attention attention = Attention::flash2) {
  StepSpec spec = spec_of(RecomputeMode::per_op);
  spec.recompute.ops = ops;
  spec.kernels.attention = attention;
  return spec;
}

/// Bytes of activations that are live when the forward ends.
std::int64_t activations_after_forward(const StepSpec& spec) {
  const Program p = build_program(spec, 1);
  std::int64_t live = 0;
  for (const Op& op : p.slice(p.steps[0])) {
    if (op.kind == OpKind::mark && p.marks[op.id].kind == MarkKind::forward && !p.marks[op.id].begin) return live;
    if (op.kind == OpKind::alloc && p.buffers[op.id].owner == Owner::activations) live += p.buffers[op.id].bytes;
    if (op.kind == OpKind::free && p.buffers[op.id].owner == Owner::activations) live -= p.buffers[op.id].bytes;
  }
  return -1;
}

/// Ops launched within recompute marks.
std::map<std::string, int> recomputed(const StepSpec& spec) {
  const Program p = build_program(spec, 1);
  std::map<std::string, int> result;
  bool inside = false;
  for (const Op& op : p.slice(p.steps[0])) {
    if (op.kind == OpKind::mark && p.marks[op.id].kind == MarkKind::recompute) inside = p.marks[op.id].begin;
    if (inside && op.kind == OpKind::launch) ++result[p.kernels[op.id].op];
  }
  return result;
}

int count(const std::map<std::string, int>& ops, const std::string& op) {
  const auto at = ops.find(op);
  return at == ops.end() ? 0 : at->second;
}

void expect_clean(const StepSpec& spec) {
  const auto findings = check(build_program(spec, 3));
  CHECK_MESSAGE(findings.empty(), (findings.empty() ? "" : findings.front().text));
}

TEST_CASE("every second of four blocks: half of what full recomputation saves, half of its kernels") {
  const std::int64_t none = activations_after_forward(spec_of(RecomputeMode::none)), full = activations_after_forward(spec_of(RecomputeMode::full));
  StepSpec spec = spec_of(RecomputeMode::every_k);
  CHECK(activations_after_forward(spec) == (none + full) / 2);
  CHECK(count(recomputed(spec), "aten::mm q") == 2);
  CHECK(count(recomputed(spec_of(RecomputeMode::full)), "aten::mm q") == 4);
  spec.recompute.every = 1;
  CHECK(activations_after_forward(spec) == full);
  spec.recompute.every = 5;  // the first would be the fifth block
  CHECK(activations_after_forward(spec) == none);
  spec.recompute.every = 3;  // b2
  CHECK(count(recomputed(spec), "aten::mm q") == 1);
  expect_clean(spec);
}

/// Blocks 0 to n - 1 that a share recomputes, a digit each.
std::string blocks_of(double share, std::int64_t n) {
  std::string text;
  for (std::int64_t block = 0; block < n; ++block) text += recomputes({.mode = RecomputeMode::share, .share = share}, block) ? '1' : '0';
  return text;
}

/// By fms-fsdp's own words: count up to 1/2, then to 3/2, 5/2, ...
std::string counted_up(double share, std::int64_t n) {
  std::string text;
  double cut_off = 0.5;
  for (std::int64_t block = 1; block <= n; ++block) {
    const bool reached = static_cast<double>(block) * share >= cut_off;
    if (reached) ++cut_off;
    text += reached ? '1' : '0';
  }
  return text;
}

TEST_CASE("a share of the blocks: each whose count times the share reaches the next of 1/2, 3/2, 5/2, ...") {
  CHECK(blocks_of(0.5, 6) == "101010");     // 1/2, 1 < 3/2, 3/2, 2, 5/2, 3
  CHECK(blocks_of(0.75, 8) == "11011101");  // 3/4, 3/2, 9/4 < 5/2, 3, 15/4 >= 7/2, 9/2, 21/4 < 11/2, 6
  CHECK(blocks_of(1, 4) == "1111");
  CHECK(blocks_of(0, 4) == "0000");
  for (const double share : {0.01, 0.1, 1.0 / 5, 1.0 / 3, 0.39, 0.47, 2.0 / 3, 0.71, 0.9, 0.99, 1.0}) {
    CAPTURE(share);
    CHECK(blocks_of(share, 96) == counted_up(share, 96));
  }
}

TEST_CASE("half of four blocks: half of what full recomputation saves") {
  const std::int64_t none = activations_after_forward(spec_of(RecomputeMode::none)), full = activations_after_forward(spec_of(RecomputeMode::full));
  StepSpec spec = spec_of(RecomputeMode::share);
  CHECK(activations_after_forward(spec) == (none + full) / 2);
  spec.recompute.share = 0.75;
  CHECK(activations_after_forward(spec) == (none + 3 * full) / 4);
  CHECK(count(recomputed(spec), "aten::mm q") == 3);
  expect_clean(spec);
}

TEST_CASE("all but attention: the output of fused attention and its row statistic stay with the block's input, and attention does not run again") {
  const StepSpec spec = per_op(RecomputeOps::all_but_attention);
  // Per block and token, beyond full recomputation's input: 2 h attention output, 4 a log-sum-exp.
  CHECK(activations_after_forward(spec) == activations_after_forward(spec_of(RecomputeMode::full)) + 4 * (2 * kTh + 4 * kTokens * kHeads));
  const auto again = recomputed(spec), full = recomputed(spec_of(RecomputeMode::full));
  CHECK(count(full, "scaled_dot_product_attention") == 4);
  CHECK(count(again, "scaled_dot_product_attention") == 0);
  CHECK(count(again, "aten::mm gate") == 4);
  CHECK(count(again, "aten::mm q") == 4);
  expect_clean(spec);
}

TEST_CASE("all but matrix products: outputs of all GEMMs stay, pointwise kernels run again") {
  const StepSpec spec = per_op(RecomputeOps::all_but_matmul);
  // Per token: q, k, v, the attention's output, out and down 2 h each, 4 a log-sum-exp, gate and up 2 f each. Nothing needs down again.
  const std::int64_t kept = 6 * 2 * kTh + 4 * kTokens * kHeads + 2 * 2 * kTokens * kFfn;
  CHECK(activations_after_forward(spec) == activations_after_forward(spec_of(RecomputeMode::full)) + 4 * kept);
  const auto again = recomputed(spec);
  for (const char* op :
       {"aten::mm q", "aten::mm k", "aten::mm v", "aten::mm out", "aten::mm gate", "aten::mm up", "aten::mm down", "scaled_dot_product_attention"})
    CHECK(count(again, op) == 0);
  CHECK(count(again, "aten::mul cos") == 2 * 4);
  CHECK(count(again, "aten::silu") == count(recomputed(spec_of(RecomputeMode::full)), "aten::silu"));
  expect_clean(spec);
}

TEST_CASE(
    "all but every second matrix product: of seven the first, third, fifth and seventh stay, though nothing needs the seventh; a compiled graph drops it") {
  const StepSpec spec = per_op(RecomputeOps::all_but_every_second_matmul);
  // Per token: q, v, the attention's output and down 2 h each, 4 a log-sum-exp, gate 2 f.
  const std::int64_t kept = 4 * 2 * kTh + 4 * kTokens * kHeads + 2 * kTokens * kFfn;
  CHECK(activations_after_forward(spec) == activations_after_forward(spec_of(RecomputeMode::full)) + 4 * kept);
  const auto again = recomputed(spec);
  for (const char* op : {"aten::mm q", "aten::mm v", "aten::mm gate", "aten::mm down", "scaled_dot_product_attention"}) CHECK(count(again, op) == 0);
  for (const char* op : {"aten::mm k", "aten::mm out", "aten::mm up"}) CHECK(count(again, op) == 4);
  StepSpec compiled = spec, compiled_full = spec_of(RecomputeMode::full);
  compiled.kernels.set = compiled_full.kernels.set = KernelSet::pytorch_compile;
  CHECK(activations_after_forward(compiled) == activations_after_forward(compiled_full) + 4 * (kept - 2 * kTh));
  expect_clean(spec);
}

TEST_CASE("the core of unfused attention: its scores go and come back just before their gradient; 6 a s bytes a token less") {
  const StepSpec spec = per_op(RecomputeOps::attention, Attention::unfused);
  StepSpec none = spec;
  none.recompute.mode = RecomputeMode::none;
  CHECK(activations_after_forward(none) - activations_after_forward(spec) == 4 * 6 * kTokens * kHeads * 4096);
  const auto again = recomputed(spec);
  CHECK(count(again, "aten::bmm scores") == 4);
  CHECK(count(again, "aten::softmax fp32") == 4);
  CHECK(count(again, "aten::bmm values") == 0);  // early stop: nothing behind the probabilities is needed
  CHECK(count(again, "aten::mm q") == 0);
  const Program p = build_program(spec, 1);
  const Words all = test::words(p, p.steps[0], {OpKind::launch, OpKind::mark});
  const auto back = std::find(std::find(all.begin(), all.end(), "kernel MmBackward0 input out"), all.end(), "kernel aten::bmm scores");
  REQUIRE(back != all.end());
  CHECK(*(back - 2) == "kernel MmBackward0 weight out");  // then the mark, then the recomputation
  CHECK(*std::find_if(back, all.end(), [](const std::string& w) { return w.starts_with("kernel BmmBackward0"); }) == "kernel BmmBackward0 probabilities");
  expect_clean(spec);
}

TEST_CASE("around the unit, reentrant: each block is gathered three times and nothing is prefetched in the backward") {
  StepSpec spec = test::fixed_step(3);
  spec.recompute = {.mode = RecomputeMode::full, .nesting = Nesting::outside, .reentrant = true};
  const Program p = build_program(spec, 2);
  CHECK(test::words(p, p.steps[1], {OpKind::collective}) == Words{"AG root", "AG b0", "AG b1", "AG b2",  // forward
                                                                  "AG b2", "AG b2", "RS b2",             // its forward again, then its backward
                                                                  "AG b1", "AG b1", "RS b1", "AG b0", "AG b0", "RS b0", "RS root"});
  spec.recompute.reentrant = false;  // the hooks return at once: as inside
  const Program inside = [&] {
    StepSpec s = spec;
    s.recompute.nesting = Nesting::inside;
    return build_program(s, 2);
  }();
  CHECK(build_program(spec, 2).ops == inside.ops);
  CHECK(test::count_prefix(test::words(inside, inside.steps[1], {OpKind::collective}), "AG") == 1 + 3 + 3);
}

TEST_CASE("around the unit, reentrant: 32 more gathers for 32 blocks; SHARD_GRAD_OP needs none; every second block half as many") {
  StepSpec spec = test::fixed_step(32);
  spec.recompute = {.mode = RecomputeMode::full, .nesting = Nesting::outside, .reentrant = true};
  const auto gathers = [&] {
    const Program p = build_program(spec, 2);
    return test::count_prefix(test::words(p, p.steps[1], {OpKind::collective}), "AG");
  };
  CHECK(gathers() == 65 + 32);
  spec.recompute.mode = RecomputeMode::every_k;
  CHECK(gathers() == 65 + 16);
  spec.policy.sharding = Sharding::shard_grad_op;
  CHECK(gathers() == 33);
}

TEST_CASE("around the unit, kernel by kernel: the whole forward runs again, without early stop") {
  StepSpec spec = spec_of(RecomputeMode::full);
  spec.recompute.nesting = Nesting::outside;
  spec.recompute.reentrant = true;
  CHECK(count(recomputed(spec), "aten::mm down") == 4);
  CHECK(count(recomputed(spec_of(RecomputeMode::full)), "aten::mm down") == 0);
  for (const auto sharding : {Sharding::full_shard, Sharding::shard_grad_op, Sharding::hybrid_shard}) {
    spec.policy.sharding = sharding;
    expect_clean(spec);
  }
}

TEST_CASE("what cannot be is refused") {
  const auto refused = [](StepSpec spec) { CHECK_THROWS_AS(build_program(spec, 1), InputError); };
  refused(per_op(RecomputeOps::attention));                              // fused attention keeps no scores
  refused(per_op(RecomputeOps::all_but_attention, Attention::unfused));  // and unfused has no single output to keep
  StepSpec spec = spec_of(RecomputeMode::full);
  spec.recompute.nesting = Nesting::outside;
  spec.policy.release = Release::before_2_1;
  refused(spec);
  spec.recompute.reentrant = true;
  expect_clean(spec);
  spec.policy.blocks_per_unit = 2;
  refused(spec);
}

TEST_CASE("chunked loss: one chunk's logits, the head's weight gradient from the forward on, the same products as the fused loss") {
  StepSpec chunked = spec_of(RecomputeMode::none), fused = chunked;
  chunked.kernels.loss = Loss::chunked;
  fused.kernels.loss = Loss::fused;
  const Program p = build_program(chunked, 1), q = build_program(fused, 1);
  CHECK(count(p, p.steps[0]).executed.in(flop) == doctest::Approx(count(q, q.steps[0]).executed.in(flop)).epsilon(1e-12));
  const auto peak_of_loss = [](const Program& program) {
    std::int64_t live = 0, peak = 0;
    for (const Op& op : program.ops) {
      if (op.kind == OpKind::alloc && program.buffers[op.id].owner == Owner::loss) peak = std::max(peak, live += program.buffers[op.id].bytes);
      if (op.kind == OpKind::free && program.buffers[op.id].owner == Owner::loss) live -= program.buffers[op.id].bytes;
    }
    return peak;
  };
  // ceil(32000 / 4096) = 8 parts of 4096 tokens: chunks of 512 tokens, in bf16, and one fp32 loss a token.
  CHECK(peak_of_loss(p) == 512 * 32000 * 2 + 4 * kTokens);
  CHECK(peak_of_loss(q) == 4 * kTokens * 32000);
  const Words launches = test::words(p, p.steps[0], {OpKind::launch});
  CHECK(test::count_of(launches, "kernel aten::mm head chunk") == 8);
  CHECK(test::count_of(launches, "kernel liger_cross_entropy_kernel") == 8);
  expect_clean(chunked);
  chunked.model.tied_embeddings = true;
  expect_clean(chunked);
}

}  // namespace
}  // namespace stepcast::program
