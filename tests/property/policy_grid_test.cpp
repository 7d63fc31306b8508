// A pairwise grid over the options of FSDP1 and of what it wraps: every two values of two options that can stand together do so in at least one program.
// Each is proven clean, runs to its end, and leaves behind what it found.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "program/build.hpp"
#include "program/check.hpp"
#include "program/validate.hpp"
#include "sim/simulate.hpp"
#include "tests/support/specs.hpp"

using namespace stepcast;
using namespace stepcast::program;

namespace {

struct Option {
  const char* name;
  int values;
  void (*set)(StepSpec& spec, int value);
};

constexpr hw::Dtype kBf16 = hw::Dtype::bf16, kFp32 = hw::Dtype::fp32, kFp16 = hw::Dtype::fp16;
constexpr std::array<Precision, 5> kPrecisions{
    Precision{kBf16, kBf16, kFp32}, {kBf16, kFp32, kFp32}, {kBf16, kBf16, kBf16}, {kFp32, kFp32, kFp32}, {kFp16, kBf16, kFp32}};

const Option kOptions[] = {
    {"sharding", 5, [](StepSpec& s, int v) { s.policy.sharding = static_cast<Sharding>(v); }},
    {"backward_prefetch", 3, [](StepSpec& s, int v) { s.policy.backward_prefetch = static_cast<BackwardPrefetch>(v); }},
    {"forward_prefetch", 2, [](StepSpec& s, int v) { s.policy.forward_prefetch = v == 1; }},
    {"limiter", 2, [](StepSpec& s, int v) { s.policy.limit_all_gathers = v == 1; }},
    {"use_orig_params", 2, [](StepSpec& s, int v) { s.policy.use_orig_params = v == 1; }},
    {"accumulation", 3,
     [](StepSpec& s, int v) {
       s.batch.grad_accum = v == 0 ? 1 : 2;
       s.policy.no_sync = v == 2;
     }},
    {"wrap", 5,
     [](StepSpec& s, int v) {
       s.policy.wrap = static_cast<Wrap>(std::min(v, 3));
       if (v == 4) s.policy.wrap = Wrap::blocks, s.policy.blocks_per_unit = 2;
       s.policy.min_unit_parameters = 2'000'000;
     }},
    {"release", 3, [](StepSpec& s, int v) { s.policy.release = static_cast<Release>(v); }},
    {"recompute", 4, [](StepSpec& s, int v) { s.recompute.mode = static_cast<RecomputeMode>(v); }},
    {"ops", 4, [](StepSpec& s, int v) { s.recompute.ops = static_cast<RecomputeOps>(v); }},
    {"nesting", 2, [](StepSpec& s, int v) { s.recompute.nesting = static_cast<Nesting>(v); }},
    {"reentrant", 2, [](StepSpec& s, int v) { s.recompute.reentrant = v == 1; }},
    {"early_stop", 2, [](StepSpec& s, int v) { s.recompute.early_stop = v == 1; }},
    {"precision", 5, [](StepSpec& s, int v) { s.precision = kPrecisions[static_cast<std::size_t>(v)]; }},
    {"attention", 2, [](StepSpec& s, int v) { s.kernels.attention = v == 0 ? Attention::flash2 : Attention::unfused; }},
    {"loss", 4, [](StepSpec& s, int v) { s.kernels.loss = static_cast<Loss>(v); }},
    {"keep_logits", 2, [](StepSpec& s, int v) { s.kernels.keep_logits = v == 1; }},
    {"expand_kv", 2, [](StepSpec& s, int v) { s.kernels.expand_kv = v == 0; }},
    {"kernels", 2, [](StepSpec& s, int v) { s.kernels.set = v == 0 ? KernelSet::pytorch_eager : KernelSet::pytorch_compile; }},
    {"optimizer", 3, [](StepSpec& s, int v) { s.optimizer.implementation = static_cast<OptimizerImpl>(v); }},
    {"clip", 2, [](StepSpec& s, int v) { s.optimizer.clip_grad_norm = v == 1; }},
    {"set_to_none", 2, [](StepSpec& s, int v) { s.optimizer.zero_grad_set_to_none = v == 1; }},
    {"model", 7,
     [](StepSpec& s, int v) {
       if (v == 1 || v == 2) s.model = program::test::gpt(250, 4, 5, 1003, 128, v == 1);
       if (v == 2) s.model.clip_qkv = true;
       if (v == 3) s.model.experts = 3, s.model.active_experts = 2;
       if (v == 4) s.model.fused_qkv = s.model.fused_gate_up = s.model.clip_qkv = true;
       if (v == 5) s.model.layout = BlockLayout::parallel, s.model.ffn_kind = FfnKind::gelu, s.model.kv_heads = 1;
       if (v == 6) {
         s.model.layout = BlockLayout::sandwich, s.model.ffn_kind = FfnKind::geglu, s.model.sliding_window = 32, s.model.full_attention_every = 2;
         s.model.attention_softcap = s.model.logit_softcap = s.model.scaled_embedding = true;
       }
     }},
    {"world", 4,
     [](StepSpec& s, int v) {
       constexpr std::array<hw::GroupShape, 4> worlds{hw::GroupShape{4, 3}, {8, 1}, {2, 2}, {1, 1}};
       s.world = worlds[static_cast<std::size_t>(v)];
     }},
};
constexpr std::size_t kCount = std::size(kOptions);

using Choice = std::array<int, kCount>;
using Pair = std::tuple<std::size_t, int, std::size_t, int>;

StepSpec spec_of(const Choice& choice) {
  StepSpec spec;
  spec.model = program::test::llama2_7b();
  spec.model.hidden = 256, spec.model.layers = 4, spec.model.heads = 4, spec.model.kv_heads = 2, spec.model.head_dim = 64, spec.model.ffn = 704,
  spec.model.vocab = 1000;
  spec.batch = {.micro_batch = 1, .grad_accum = 1, .seq_len = 128};
  for (std::size_t i = 0; i < kCount; ++i) kOptions[i].set(spec, choice[i]);
  return spec;
}

std::string text_of(const Choice& choice) {
  std::string text;
  for (std::size_t i = 0; i < kCount; ++i) text += std::string(kOptions[i].name) + "=" + std::to_string(choice[i]) + " ";
  return text;
}

struct Draw {
  std::uint64_t state = 12345;
  int below(int n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state >> 33) % static_cast<std::uint64_t>(n));
  }
};

std::set<Pair> all_pairs() {
  std::set<Pair> pairs;
  for (std::size_t i = 0; i < kCount; ++i)
    for (std::size_t j = i + 1; j < kCount; ++j)
      for (int a = 0; a < kOptions[i].values; ++a)
        for (int b = 0; b < kOptions[j].values; ++b) pairs.insert({i, a, j, b});
  return pairs;
}

void cover(std::set<Pair>& pairs, const Choice& choice) {
  for (std::size_t i = 0; i < kCount; ++i)
    for (std::size_t j = i + 1; j < kCount; ++j) pairs.erase({i, choice[i], j, choice[j]});
}

/// Random values for the rest, until the rules between settings hold; false if they never do.
bool complete(Draw& draw, const Pair& pair, Choice& choice) {
  for (int attempt = 0; attempt < 300; ++attempt) {
    for (std::size_t i = 0; i < kCount; ++i) choice[i] = draw.below(kOptions[i].values);
    choice[std::get<0>(pair)] = std::get<1>(pair);
    choice[std::get<2>(pair)] = std::get<3>(pair);
    if (!broken_rule(spec_of(choice))) return true;
  }
  return false;
}

void expect_good(const Choice& choice) {
  const std::string text = text_of(choice);
  CAPTURE(text);
  const Program program = build_program(spec_of(choice), 8);
  const auto findings = check(program);
  CHECK_MESSAGE(findings.empty(), findings.front().text);
  const auto before_last = program.steps.end() - 1;  // a steady state, or few of them in turn: a queue of free events longer than there are units
  CHECK(std::find(program.steps.begin(), before_last, program.steps.back()) != before_last);
  sim::Options options;
  options.pool_bytes = std::int64_t{1} << 40;
  const auto result = sim::simulate(program, sim::price(program, sim::FixedCosts{}), options);
  CHECK(result.outcome == sim::Outcome::ok);
}

}  // namespace

TEST_CASE("every pair of option values that the rules allow gives a clean program that runs to its end") {
  std::set<Pair> open = all_pairs();
  Draw draw;
  int programs = 0;
  std::set<std::string> impossible;
  while (!open.empty()) {
    const Pair pair = *open.begin();
    open.erase(open.begin());
    Choice choice{};
    if (!complete(draw, pair, choice)) {
      impossible.insert(std::string(kOptions[std::get<0>(pair)].name) + "=" + std::to_string(std::get<1>(pair)) + " " + kOptions[std::get<2>(pair)].name + "=" +
                        std::to_string(std::get<3>(pair)));
      continue;
    }
    cover(open, choice);
    expect_good(choice);
    ++programs;
  }
  CHECK(programs > 50);
  // Refused by the rules: recomputation of chosen kernels around the unit or reentrant, a unit for the head alone whose weight is the embedding's, logits kept
  // that were never whole, the choice not to expand keys and values where none are or all must be, and experts in a compiled graph.
  CHECK(impossible == std::set<std::string>{"recompute=3 nesting=1", "recompute=3 reentrant=1", "wrap=1 model=1", "loss=3 keep_logits=1",
                                            "attention=1 expand_kv=1", "expand_kv=1 model=1", "expand_kv=1 model=2", "kernels=1 model=3"});
}
