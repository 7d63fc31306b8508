// A pairwise grid over the options of all frameworks and of what they wrap: every two values of two options that can stand together do so in at least one program.
// Each is proven clean, runs to its end, and leaves behind what it found.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "program/build.hpp"
#include "program/check.hpp"
#include "program/validate.hpp"
#include "sim/simulate.hpp"
#include "tests/support/pairs.hpp"
#include "tests/support/specs.hpp"

using namespace stepcast;
using namespace stepcast::program;
using stepcast::test::Choice;

namespace {

/// Value 0 is the default of every framework. `common`: the option means something to all of them.
struct Option {
  const char* name;
  int values;
  void (*set)(StepSpec& spec, int value);
  bool common = false;
};

constexpr hw::Dtype kBf16 = hw::Dtype::bf16, kFp32 = hw::Dtype::fp32, kFp16 = hw::Dtype::fp16;
constexpr std::array<Precision, 12> kPrecisions{Precision{kBf16, kBf16, kFp32},
                                                {kBf16, kFp32, kFp32},
                                                {kBf16, kBf16, kBf16},
                                                {kFp32, kFp32, kFp32},
                                                {kFp16, kBf16, kFp32},
                                                {kFp32, kFp32, kFp32, Matmul::tf32},
                                                {kBf16, kFp32, kFp32, Matmul::fp8_tensorwise},
                                                {kBf16, kBf16, kFp32, Matmul::fp8_delayed},
                                                {kBf16, kFp32, kFp32, Matmul::fp8_tensorwise, true},
                                                {kFp16, kFp16, kFp32, Matmul::param, false, true},
                                                {kBf16, kFp32, kFp32, Matmul::fp8_rowwise},
                                                {kBf16, kFp32, kFp32, Matmul::fp8_blockwise}};
constexpr std::array<Release, 3> kReleases{Release::from_2_1, Release::before_2_1, Release::from_2_8};

const Option kOptions[] = {
    {"framework", 6, [](StepSpec& s, int v) { s.policy.framework = static_cast<Framework>(v); }},
    {"sharding", 5, [](StepSpec& s, int v) { s.policy.sharding = static_cast<Sharding>(v); }},
    {"backward_prefetch", 3, [](StepSpec& s, int v) { s.policy.backward_prefetch = static_cast<BackwardPrefetch>(v); }},
    {"forward_prefetch", 2, [](StepSpec& s, int v) { s.policy.forward_prefetch = v == 1; }},
    {"no_limiter", 2, [](StepSpec& s, int v) { s.policy.limit_all_gathers = v == 0; }},
    {"use_orig_params", 2, [](StepSpec& s, int v) { s.policy.use_orig_params = v == 1; }},
    {"reshard_after_forward", 3, [](StepSpec& s, int v) { s.policy.reshard_after_forward = v == 0   ? kReshardAfterForward
                                                                                           : v == 1 ? kKeepAfterForward
                                                                                                    : 2; }},
    {"forward_prefetch_depth", 3, [](StepSpec& s, int v) { s.policy.forward_prefetch_depth = v; }},
    {"backward_prefetch_depth", 3, [](StepSpec& s, int v) { s.policy.backward_prefetch_depth = 1 + v; }},
    {"embedding_stays_sharded", 2, [](StepSpec& s, int v) { s.policy.unshard_embedding_in_backward = v == 0; }},
    {"bucket_cap", 2,
     [](StepSpec& s, int v) {
       if (v == 1) s.policy.bucket_cap = 300'000;
     }},
    {"bucket_view", 2, [](StepSpec& s, int v) { s.policy.gradient_as_bucket_view = v == 1; }},
    {"reduce_bucket_size", 2,
     [](StepSpec& s, int v) {
       if (v == 1) s.policy.reduce_bucket_size = 200'000;
     }},
    {"allgather_bucket_size", 2,
     [](StepSpec& s, int v) {
       if (v == 1) s.policy.allgather_bucket_size = 700'001;
     }},
    {"overlap_comm", 2, [](StepSpec& s, int v) { s.policy.overlap_comm = v == 1; }},
    {"scattered_gradients", 2, [](StepSpec& s, int v) { s.policy.contiguous_gradients = v == 0; }},
    {"no_reduce_scatter", 2, [](StepSpec& s, int v) { s.policy.reduce_scatter = v == 0; }},
    {"prefetch_bucket_size", 3,
     [](StepSpec& s, int v) {
       if (v > 0) s.policy.stage3_prefetch_bucket_size = v == 1 ? 0 : 300'000;
     }},
    {"max_live_parameters", 2,
     [](StepSpec& s, int v) {
       if (v == 1) s.policy.stage3_max_live_parameters = 500'000;
     }},
    {"max_reuse_distance", 2,
     [](StepSpec& s, int v) {
       if (v == 1) s.policy.stage3_max_reuse_distance = 0;
     }},
    {"persistence_threshold", 2,
     [](StepSpec& s, int v) {
       if (v == 1) s.policy.stage3_param_persistence_threshold = 0;
     }},
    {"cpu_offload", 3, [](StepSpec& s, int v) { s.policy.cpu_offload = static_cast<CpuOffload>(v); }},
    {"accumulation", 3,
     [](StepSpec& s, int v) {
       s.batch.grad_accum = v == 0 ? 1 : 2;
       s.policy.no_sync = v == 2;
     }},
    {"wrap", 7,
     [](StepSpec& s, int v) {
       s.policy.wrap = static_cast<Wrap>(v < 6 ? v : 0);
       if (v == 6) s.policy.blocks_per_unit = 2;
       s.policy.min_unit_parameters = 200'000;
     }},
    {"release", 3, [](StepSpec& s, int v) { s.policy.release = kReleases[static_cast<std::size_t>(v)]; }},
    {"recompute", 5, [](StepSpec& s, int v) { s.recompute.mode = static_cast<RecomputeMode>(v); }, true},
    {"ops", 4, [](StepSpec& s, int v) { s.recompute.ops = static_cast<RecomputeOps>((v + 1) % 4); }, true},
    {"nesting", 2, [](StepSpec& s, int v) { s.recompute.nesting = static_cast<Nesting>(v); }},
    {"reentrant", 2, [](StepSpec& s, int v) { s.recompute.reentrant = v == 1; }, true},
    {"no_early_stop", 2, [](StepSpec& s, int v) { s.recompute.early_stop = v == 0; }, true},
    {"precision", 12,
     [](StepSpec& s, int v) {
       s.precision = kPrecisions[static_cast<std::size_t>(v)];
       if (s.policy.framework == Framework::ddp) s.precision.reduce = s.precision.master;  // as the scenario's default
     }},
    {"attention", 2, [](StepSpec& s, int v) { s.kernels.attention = v == 0 ? Attention::flash2 : Attention::unfused; }, true},
    {"loss", 4, [](StepSpec& s, int v) { s.kernels.loss = static_cast<Loss>(v); }, true},
    {"keep_logits", 2, [](StepSpec& s, int v) { s.kernels.keep_logits = v == 1; }, true},
    {"kept_kv", 2, [](StepSpec& s, int v) { s.kernels.expand_kv = v == 0; }, true},
    {"kernels", 3,
     [](StepSpec& s, int v) {
       constexpr std::array<KernelSet, 3> sets{KernelSet::pytorch_eager, KernelSet::pytorch_compile, KernelSet::megatron};
       s.kernels.set = sets[static_cast<std::size_t>(v)];
     },
     true},
    {"train_metrics", 2,
     [](StepSpec& s, int v) {
       if (v == 1) s.kernels.keep_logits = true, s.kernels.train_metrics = 2;
     }},
    {"dropout", 3,
     [](StepSpec& s, int v) {
       s.model.attention_dropout = v == 2;
       s.model.hidden_dropout = v >= 1;
     }},
    {"rope", 3, [](StepSpec& s, int v) { s.kernels.rope = static_cast<RopeKernels>(v); }},
    {"sync_each_phase", 2, [](StepSpec& s, int v) { s.sync_each_phase = v == 1; }},
    {"optimizer", 3, [](StepSpec& s, int v) { s.optimizer.implementation = static_cast<OptimizerImpl>(2 - v); }},
    {"no_clip", 2, [](StepSpec& s, int v) { s.optimizer.clip_grad_norm = v == 0; }, true},
    {"clip_host_sync", 2, [](StepSpec& s, int v) { s.optimizer.clip_host_sync = v == 1; }},
    {"zero_gradients", 2, [](StepSpec& s, int v) { s.optimizer.zero_grad_set_to_none = v == 0; }},
    {"in_backward", 2, [](StepSpec& s, int v) { s.optimizer.in_backward = v == 1; }},
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
     },
     true},
    {"adapters", 3,
     [](StepSpec& s, int v) {
       s.model.lora_rank = v == 0 ? 0 : 8;
       if (v > 0) s.model.lora_targets = v == 1 ? LoraTargets::query_value : LoraTargets::all_linear;
     }},
    {"frozen", 5,
     [](StepSpec& s, int v) {
       s.model.frozen_embedding = v == 1 || v == 2;
       s.model.frozen_blocks = v == 2 || v == 3 ? 2 : 0;
       s.model.frozen_head = v == 4 || (s.model.tied_embeddings && s.model.frozen_embedding);
     }},
    {"world", 4,
     [](StepSpec& s, int v) {
       constexpr std::array<hw::GroupShape, 4> worlds{hw::GroupShape{4, 3}, {8, 1}, {2, 2}, {1, 1}};
       s.world = worlds[static_cast<std::size_t>(v)];
     },
     true},
};
constexpr std::size_t kCount = std::size(kOptions);

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
  for (std::size_t i = 0; i < kCount; ++i) {
    if (choice[i] != 0) text += std::string(kOptions[i].name) + "=" + std::to_string(choice[i]) + " ";
  }
  return text;
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

std::string text_of(const stepcast::test::Pair& pair) {
  const auto one = [](std::size_t option, int value) { return std::string(kOptions[option].name) + "=" + std::to_string(value); };
  return one(pair.i, pair.a) + " " + one(pair.j, pair.b);
}

}  // namespace

TEST_CASE("every pair of option values that the rules allow gives a clean program that runs to its end") {
  std::vector<int> values;
  for (const Option& option : kOptions) values.push_back(option.values);
  stepcast::test::AllPairs pairs(values, [](const Choice& choice) { return !broken_rule(spec_of(choice)); });
  int programs = 0;
  std::set<std::pair<std::size_t, int>> used;
  while (const auto choice = pairs.next()) {
    for (std::size_t i = 0; i < kCount; ++i) used.emplace(i, (*choice)[i]);
    expect_good(*choice);
    ++programs;
  }
  MESSAGE(programs << " programs, " << pairs.impossible().size() << " pairs refused");
  CHECK(programs > 50);
  CHECK(programs < 400);
  std::size_t all = 0;
  for (const Option& option : kOptions) all += static_cast<std::size_t>(option.values);
  CHECK(used.size() == all);
  // Among options that every framework knows, the rules refuse reentrant recomputation of chosen kernels, grouped keys where none are or where they must be
  // copied, logits kept that were never whole, experts in a compiled graph, and Megatron's kernels for other blocks than GPT's.
  std::set<std::string> refused;
  for (const stepcast::test::Pair& pair : pairs.impossible()) {
    if (kOptions[pair.i].common && kOptions[pair.j].common) refused.insert(text_of(pair));
  }
  CHECK(refused == std::set<std::string>{"attention=1 kept_kv=1", "kept_kv=1 model=1", "kept_kv=1 model=2", "loss=3 keep_logits=1", "kept_kv=1 kernels=2",
                                         "kernels=2 model=0", "kernels=2 model=2", "kernels=2 model=3", "kernels=2 model=4", "kernels=2 model=5",
                                         "kernels=2 model=6", "recompute=4 reentrant=1"});
}

TEST_CASE("the generator closes every allowed pair with far fewer choices than there are combinations") {
  const auto allowed = [](const Choice& c) { return !(c[1] == 1 && c[2] == 2) && !(c[3] == 2 && c[4] == 0); };
  stepcast::test::AllPairs pairs({2, 3, 3, 3, 2, 4}, allowed);
  std::set<stepcast::test::Pair> seen;
  int choices = 0;
  while (const auto choice = pairs.next()) {
    CHECK(allowed(*choice));
    ++choices;
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t j = i + 1; j < 6; ++j) seen.insert({i, (*choice)[i], j, (*choice)[j]});
  }
  CHECK(pairs.impossible() == std::set<stepcast::test::Pair>{{1, 1, 2, 2}, {3, 2, 4, 0}});
  // 15 pairs of options with 2 x 3, 2 x 3, 2 x 3, 2 x 2, 2 x 4, 3 x 3, 3 x 3, 3 x 2, 3 x 4, 3 x 3, 3 x 2, 3 x 4, 3 x 2, 3 x 4, 2 x 4 values, less the two refused.
  CHECK(seen.size() == 6 + 6 + 6 + 4 + 8 + 9 + 9 + 6 + 12 + 9 + 6 + 12 + 6 + 12 + 8 - 2);
  CHECK(choices < 25);
}
