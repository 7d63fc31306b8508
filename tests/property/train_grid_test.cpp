// A pairwise grid over everything that may not change what is learnt: policies, prefetching, limiter, accumulation, recomputation, wrapping, numbers of ranks. Each program
// is proven clean, trains for real, and gives the losses, gradient norms and parameters of one unsharded rank to 1e-9 in fp64.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "program/check.hpp"
#include "program/validate.hpp"
#include "tests/support/pairs.hpp"
#include "tests/support/tiny_models.hpp"

using namespace stepcast;
using namespace stepcast::program;
using stepcast::test::Choice;

namespace {

constexpr std::int64_t kSequences = 48;  // of the global batch
constexpr int kSteps = 3;

/// Value 0 is the default of every framework.
struct Option {
  const char* name;
  int values;
  void (*set)(StepSpec& spec, int value);
};

constexpr std::array<Release, 3> kReleases{Release::from_2_1, Release::before_2_1, Release::from_2_8};

void set_model(StepSpec& s, int v) {
  ModelShape& m = s.model;
  if (v == 1) m = real::test::tiny_gpt().model;
  if (v == 2) m.fused_qkv = m.fused_gate_up = true, m.sliding_window = 5, m.full_attention_every = 2;
  if (v == 3) m = real::test::tiny_gpt().model, m.tied_embeddings = false, m.fused_qkv = false, m.positions = Positions::none, m.ffn_kind = FfnKind::geglu;
  m.hidden = 24, m.layers = 4, m.heads = 3, m.kv_heads = v == 1 ? 3 : 1, m.head_dim = 6, m.ffn = 41, m.vocab = 61;  // few of them divisible by the ranks
}

const Option kOptions[] = {
    {"framework", 3, [](StepSpec& s, int v) { s.policy.framework = static_cast<Framework>(v); }},
    {"sharding", 5, [](StepSpec& s, int v) { s.policy.sharding = static_cast<Sharding>(v); }},
    {"backward_prefetch", 3, [](StepSpec& s, int v) { s.policy.backward_prefetch = static_cast<BackwardPrefetch>(v); }},
    {"forward_prefetch", 2, [](StepSpec& s, int v) { s.policy.forward_prefetch = v == 1; }},
    {"no_limiter", 2, [](StepSpec& s, int v) { s.policy.limit_all_gathers = v == 0; }},
    {"use_orig_params", 2, [](StepSpec& s, int v) { s.policy.use_orig_params = v == 1; }},
    {"reshard_after_forward", 3,
     [](StepSpec& s, int v) {
       if (v > 0) s.policy.reshard_after_forward = v == 1 ? kKeepAfterForward : 2;
     }},
    {"forward_prefetch_depth", 2, [](StepSpec& s, int v) { s.policy.forward_prefetch_depth = v; }},
    {"backward_prefetch_depth", 2, [](StepSpec& s, int v) { s.policy.backward_prefetch_depth = 1 + v; }},
    {"embedding_stays_sharded", 2, [](StepSpec& s, int v) { s.policy.unshard_embedding_in_backward = v == 0; }},
    {"bucket_cap", 2,
     [](StepSpec& s, int v) {
       if (v == 1) s.policy.bucket_cap = 20'000;
     }},
    {"bucket_view", 2, [](StepSpec& s, int v) { s.policy.gradient_as_bucket_view = v == 1; }},
    {"accumulation", 3,
     [](StepSpec& s, int v) {
       s.batch.grad_accum = v == 0 ? 1 : 2;
       s.policy.no_sync = v == 2;
     }},
    {"wrap", 7,
     [](StepSpec& s, int v) {
       s.policy.wrap = static_cast<Wrap>(v < 6 ? v : 0);
       if (v == 6) s.policy.blocks_per_unit = 2;
       s.policy.min_unit_parameters = 1'000;
     }},
    {"release", 3, [](StepSpec& s, int v) { s.policy.release = kReleases[static_cast<std::size_t>(v)]; }},
    {"recompute", 5, [](StepSpec& s, int v) { s.recompute.mode = static_cast<RecomputeMode>(v); }},
    {"ops", 3, [](StepSpec& s, int v) { s.recompute.ops = static_cast<RecomputeOps>(v + 1); }},
    {"nesting", 2, [](StepSpec& s, int v) { s.recompute.nesting = static_cast<Nesting>(v); }},
    {"reentrant", 2, [](StepSpec& s, int v) { s.recompute.reentrant = v == 1; }},
    {"no_early_stop", 2, [](StepSpec& s, int v) { s.recompute.early_stop = v == 0; }},
    {"no_clip", 2, [](StepSpec& s, int v) { s.optimizer.clip_grad_norm = v == 0; }},
    {"clip_host_sync", 2, [](StepSpec& s, int v) { s.optimizer.clip_host_sync = v == 1; }},
    {"zero_gradients", 2, [](StepSpec& s, int v) { s.optimizer.zero_grad_set_to_none = v == 0; }},
    {"in_backward", 2, [](StepSpec& s, int v) { s.optimizer.in_backward = v == 1; }},
    {"model", 4, set_model},
    {"world", 5,
     [](StepSpec& s, int v) {
       constexpr std::array<hw::GroupShape, 5> worlds{hw::GroupShape{2, 2}, {1, 1}, {2, 1}, {3, 1}, {4, 2}};
       s.world = worlds[static_cast<std::size_t>(v)];
     }},
};
constexpr std::size_t kCount = std::size(kOptions);

StepSpec spec_of(const Choice& choice) {
  StepSpec spec = real::test::tiny_llama();
  for (std::size_t i = 0; i < kCount; ++i) kOptions[i].set(spec, choice[i]);
  spec.batch.micro_batch = kSequences / spec.world.ranks() / spec.batch.grad_accum;
  return spec;
}

std::string text_of(const Choice& choice) {
  std::string text;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (choice[i] != 0) text += std::string(kOptions[i].name) + "=" + std::to_string(choice[i]) + " ";
  }
  return text;
}

/// One rank, nothing sharded, for what a choice learns from.
const real::JobResult& unsharded(const StepSpec& spec, int model) {
  static std::map<std::pair<int, bool>, real::JobResult> known;
  const std::pair key{model, spec.optimizer.clip_grad_norm};
  if (!known.contains(key)) {
    StepSpec alone = real::test::tiny_llama();
    alone.model = spec.model;
    alone.optimizer.clip_grad_norm = spec.optimizer.clip_grad_norm;
    alone.batch.micro_batch = kSequences;
    known[key] = real::test::train(alone, kSteps);
  }
  return known[key];
}

bool equal_or_absent(double a, double b) { return (std::isnan(a) && std::isnan(b)) || real::test::close(a, b); }

void expect_same(const Choice& choice) {
  const std::string text = text_of(choice);
  CAPTURE(text);
  const StepSpec spec = spec_of(choice);
  const Program program = build_program(spec, kSteps);
  const auto findings = check(program);
  CHECK_MESSAGE(findings.empty(), (findings.empty() ? "" : findings.front().text));
  const real::JobResult result = real::train_on_host(program, real::test::closed_form(spec));
  CHECK_MESSAGE(result.failures.empty(), (result.failures.empty() ? "" : result.failures.front()));
  if (!result.failures.empty()) return;
  const real::JobResult& truth = unsharded(spec, choice[kCount - 2]);
  for (std::size_t i = 0; i < kSteps; ++i) {
    CAPTURE(i);
    CHECK(real::test::close(result.steps[i].loss, truth.steps[i].loss));
    CHECK(equal_or_absent(result.steps[i].grad_norm, truth.steps[i].grad_norm));
  }
  REQUIRE(result.parameters.size() == truth.parameters.size());
  for (std::size_t i = 0; i < truth.parameters.size(); ++i) {
    CAPTURE(truth.parameters[i].name);
    CHECK(result.parameters[i].name == truth.parameters[i].name);
    CHECK(real::test::close(result.parameters[i].sum, truth.parameters[i].sum));
    CHECK(real::test::close(result.parameters[i].norm, truth.parameters[i].norm));
  }
}

}  // namespace

TEST_CASE("every pair of settings that the rules allow learns what one unsharded rank learns") {
  std::vector<int> values;
  for (const Option& option : kOptions) values.push_back(option.values);
  stepcast::test::AllPairs pairs(values, [](const Choice& choice) { return !broken_rule(spec_of(choice)); });
  int programs = 0;
  std::set<std::pair<std::size_t, int>> used;
  while (const auto choice = pairs.next()) {
    for (std::size_t i = 0; i < kCount; ++i) used.emplace(i, (*choice)[i]);
    expect_same(*choice);
    ++programs;
  }
  MESSAGE(programs << " programs, " << pairs.impossible().size() << " pairs refused");
  CHECK(programs > 40);
  std::size_t all = 0;
  for (const Option& option : kOptions) all += static_cast<std::size_t>(option.values);
  CHECK(used.size() == all);
}
