// Which modules are FSDP units: order of gathers and reductions for units of embedding and head, for the whole model as one unit, for units inside blocks, and units by size.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "hw_models/input_error.hpp"
#include "program/build.hpp"
#include "program/check.hpp"
#include "program/units.hpp"
#include "program/validate.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using Words = std::vector<std::string>;

using test::collectives;

StepSpec wrapped(Wrap wrap, std::int64_t layers) {
  StepSpec spec = test::fixed_step(layers);
  spec.policy.wrap = wrap;
  return spec;
}

TEST_CASE("embedding and head of their own: nothing is left for the root, and both are gathered twice and reduced with their own backward") {
  const StepSpec spec = wrapped(Wrap::embedding_and_head, 2);
  CHECK(collectives(spec) == Words{"AG embedding", "AG b0", "AG b1", "AG head",  // forward
                                   "AG head", "AG b1", "RS head", "AG b0", "RS b1", "AG embedding", "RS b0", "RS embedding"});
  Builder builder;
  const std::vector<Unit> units = make_units(spec, builder);
  REQUIRE(units.size() == 4);
  CHECK(units[0].flat.elements == 32000 * 4096);
  CHECK(units[3].flat.elements == 32000 * 4096 + 4096);  // head and final norm
  StepSpec tied = wrapped(Wrap::embedding_and_head, 2);
  tied.model.tied_embeddings = true;
  CHECK_THROWS_AS(build_program(tied, 1), InputError);
}

TEST_CASE("the whole model as one unit: one gather at the start, one reduction at the end") {
  const StepSpec spec = wrapped(Wrap::model, 4);
  CHECK(collectives(spec) == Words{"AG root", "RS root"});
  Builder builder;
  const std::vector<Unit> units = make_units(spec, builder);
  REQUIRE(units.size() == 1);
  CHECK(units[0].flat.elements == parameters(spec.model));
  CHECK(units[0].tensors == 4 * 9 + 3);
  CHECK(units[0].parameters == parameters(spec.model));
}

/// "name: elements" of each unit, blocks' inner ones of the first block alone.
std::vector<std::pair<std::string, std::int64_t>> units_by_size(const ModelShape& model, std::int64_t least) {
  StepSpec spec = test::reference_step(model);
  spec.model.layers = 2;
  spec.policy.wrap = Wrap::size_based;
  spec.policy.min_unit_parameters = least;
  Builder builder;
  std::vector<std::pair<std::string, std::int64_t>> result;
  for (const Unit& unit : make_units(spec, builder)) {
    if (!unit.name.starts_with("b1")) result.emplace_back(unit.name, unit.parameters);
  }
  return result;
}

TEST_CASE("by size, as PyTorch walks: into what is large enough, wrapping what still is once its children are") {
  using Units = std::vector<std::pair<std::string, std::int64_t>>;
  constexpr std::int64_t h = 4096, f = 11008, ends = 32000 * h;
  // Llama-2-7B with the default of 100 million: attention (67 million) is too small for itself, and so is the block without its feed-forward
  CHECK(units_by_size(test::llama2_7b(), 100'000'000) ==
        Units{{"embedding", ends}, {"b0.feed_forward", 3 * h * f}, {"head", ends + h}, {"root", 2 * (4 * h * h + 2 * h)}});
  CHECK(units_by_size(test::llama2_7b(), 60'000'000) ==
        Units{{"embedding", ends}, {"b0.attention", 4 * h * h}, {"b0.feed_forward", 3 * h * f}, {"head", ends + h}, {"root", 2 * 2 * h}});
  // Each linear layer; the norms, with 8192 elements, stay
  CHECK(units_by_size(test::llama2_7b(), 10'000'000).size() == 1 + 7 + 2);
  // Both parts too small, the block not: the block
  CHECK(units_by_size(test::llama2_7b(), 150'000'000) == Units{{"b0", 4 * h * h + 3 * h * f + 2 * h}, {"root", 2 * ends + h}});
  // Attention and down are too small, the block without gate and up is not
  ModelShape fused = test::llama2_7b();
  fused.fused_gate_up = true;
  CHECK(units_by_size(fused, 80'000'000) == Units{{"embedding", ends}, {"b0.gate_up", 2 * h * f}, {"b0.block", 4 * h * h + h * f + 2 * h}, {"head", ends + h}});
  // Nothing is large enough
  CHECK(units_by_size(test::llama2_7b(), 300'000'000).size() == 1);
  // 70B: gate, up and down for themselves; q and out of 67 million together with k and v
  ModelShape large = test::llama3_8b();
  large.hidden = 8192, large.heads = 64, large.ffn = 28672;
  const Units units = units_by_size(large, 100'000'000);
  REQUIRE(units.size() == 1 + 4 + 2);
  CHECK(units[1] == Units::value_type{"b0.attention", 2 * 8192 * 8192 + 2 * 8192 * 1024});
  CHECK(units[2] == Units::value_type{"b0.gate", 8192 * 28672});
}

StepSpec inside(Framework framework, Wrap wrap) {
  StepSpec spec = test::reference_step();
  spec.model.layers = 2;
  spec.policy.framework = framework;
  spec.policy.wrap = wrap;
  return spec;
}

Words gathers_and_reductions(const StepSpec& spec) {
  const Program p = build_program(spec, 2);
  Words result;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind != OpKind::collective || p.collectives[op.id].shape.kind == hw::CollectiveKind::all_reduce) continue;
    const std::string& buffer = p.buffers[p.operands_of(op).back().buffer].label;
    const bool gather = p.collectives[op.id].shape.kind == hw::CollectiveKind::all_gather;
    result.push_back((gather ? "AG " : "RS ") + buffer.substr(0, buffer.rfind('.')));
  }
  return result;
}

TEST_CASE("attention and feed-forward as units: gathered and reduced one by one, the norms with the root") {
  const Words expected{"AG root", "AG b0.attention", "AG b0.feed_forward", "AG b1.attention", "AG b1.feed_forward",
                       // backward: each prefetches the one before
                       "AG b1.feed_forward", "AG b1.attention", "RS b1.feed_forward", "AG b0.feed_forward", "RS b1.attention", "AG b0.attention",
                       "RS b0.feed_forward", "RS b0.attention", "RS root"};
  CHECK(gathers_and_reductions(inside(Framework::fsdp1, Wrap::attention_and_ffn)) == expected);
  CHECK(gathers_and_reductions(inside(Framework::fsdp2, Wrap::attention_and_ffn)) == expected);
}

TEST_CASE("linear layers as units: seven a block; each is gathered before its own kernel and given back behind it") {
  const StepSpec spec = inside(Framework::fsdp2, Wrap::linears);
  const Words words = gathers_and_reductions(spec);
  CHECK(std::count_if(words.begin(), words.end(), [](const std::string& w) { return w.starts_with("AG"); }) == 1 + 2 * 14);
  CHECK(std::count_if(words.begin(), words.end(), [](const std::string& w) { return w.starts_with("RS"); }) == 1 + 14);
  CHECK(Words(words.begin(), words.begin() + 8) == Words{"AG root", "AG b0.q", "AG b0.k", "AG b0.v", "AG b0.out", "AG b0.gate", "AG b0.up", "AG b0.down"});
}

/// Gemma-2-9B by 10 million parameters: q and out are units, k and v (7.3 million each) the attention's rest, which is a unit around both.
TEST_CASE("a unit around others is gathered before them and reduced behind them, in the forward and in the backward") {
  for (const Framework framework : {Framework::fsdp1, Framework::fsdp2}) {
    StepSpec spec = inside(framework, Wrap::size_based);
    spec.model = test::gemma2_9b(), spec.model.layers = 1;
    spec.policy.min_unit_parameters = 10'000'000;
    const Words words = gathers_and_reductions(spec);
    const auto at = [&](const char* word) { return std::find(words.begin(), words.end(), word); };
    CHECK(at("AG b0.attention") < at("AG b0.q"));
    CHECK(at("AG b0.q") < at("AG b0.out"));
    REQUIRE(at("RS b0.gate") != words.end());
    const Words backward(at("RS b0.gate") + 1, words.end());
    const auto behind = [&](const char* word) { return std::find(backward.begin(), backward.end(), word); };
    CHECK(behind("RS b0.out") < behind("RS b0.q"));
    CHECK(behind("RS b0.q") < behind("RS b0.attention"));
    CHECK(behind("RS b0.attention") != backward.end());
    for (const char* unit : {"AG b0.attention", "AG b0.q", "AG b0.out"}) CHECK(std::count(words.begin(), words.end(), unit) == 2);
  }
}

TEST_CASE("each way of wrapping is proven clean kernel by kernel") {
  for (const Framework framework : {Framework::fsdp1, Framework::fsdp2}) {
    for (const Wrap wrap : {Wrap::embedding_and_head, Wrap::model, Wrap::size_based, Wrap::attention_and_ffn, Wrap::linears}) {
      for (const std::int64_t least : {100'000'000, 10'000'000}) {
        for (const bool experts : {false, true}) {
          StepSpec spec = inside(framework, wrap);
          spec.policy.min_unit_parameters = least;
          if (experts) spec.model = test::mixtral_8x7b(), spec.model.layers = 2;
          spec.batch.grad_accum = 2;
          spec.policy.no_sync = least > 50'000'000;
          const auto findings = check(build_program(spec, 3));
          CHECK_MESSAGE(findings.empty(), (findings.empty() ? "" : findings.front().text));
        }
      }
    }
  }
}

StepSpec checkpointed(Framework framework, Wrap wrap) {
  StepSpec spec = inside(framework, wrap);
  spec.recompute.mode = RecomputeMode::full;
  spec.recompute.nesting = Nesting::outside;
  return spec;
}

const Words kForward{"AG root", "AG b0.attention", "AG b0.feed_forward", "AG b1.attention", "AG b1.feed_forward"};

Words backward_of(const StepSpec& spec) {
  Words words = gathers_and_reductions(spec);
  CHECK(std::equal(kForward.begin(), kForward.end(), words.begin()));
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(kForward.size()));
  return words;
}

TEST_CASE(
    "a checkpoint around the block: its recomputation gathers and gives back the attention that was prefetched, the backward gathers it again; the "
    "feed-forward has its parameters") {
  CHECK(backward_of(checkpointed(Framework::fsdp1, Wrap::attention_and_ffn)) ==
        Words{"AG b1.feed_forward", "AG b1.attention", "RS b1.feed_forward", "AG b1.attention", "AG b0.feed_forward", "RS b1.attention",  //
              "AG b0.attention", "RS b0.feed_forward", "AG b0.attention", "RS b0.attention", "RS root"});
  // FSDP2's groups keep what they have gathered in a recomputation.
  CHECK(gathers_and_reductions(checkpointed(Framework::fsdp2, Wrap::attention_and_ffn)) ==
        gathers_and_reductions(inside(Framework::fsdp2, Wrap::attention_and_ffn)));
  // So do FSDP1's where nothing is resharded after a forward.
  StepSpec kept = checkpointed(Framework::fsdp1, Wrap::attention_and_ffn);
  kept.policy.sharding = Sharding::shard_grad_op;
  CHECK(backward_of(kept) == Words{"RS b1.feed_forward", "RS b1.attention", "RS b0.feed_forward", "RS b0.attention", "RS root"});
}

TEST_CASE("reentrant: the recomputation gathers both and gives them back, and prefetches reach no further than the block") {
  StepSpec spec = checkpointed(Framework::fsdp1, Wrap::attention_and_ffn);
  spec.recompute.reentrant = true;
  CHECK(backward_of(spec) ==
        Words{"AG b1.attention", "AG b1.feed_forward", "AG b1.feed_forward", "AG b1.attention", "RS b1.feed_forward", "RS b1.attention",  //
              "AG b0.attention", "AG b0.feed_forward", "AG b0.feed_forward", "AG b0.attention", "RS b0.feed_forward", "RS b0.attention", "RS root"});
}

TEST_CASE("a block whose last part is a norm: what was dropped is asked for before any unit of it is") {
  StepSpec spec = checkpointed(Framework::fsdp1, Wrap::attention_and_ffn);
  spec.model.layout = BlockLayout::sandwich;
  CHECK(backward_of(spec) == Words{"AG b1.feed_forward", "AG b1.attention", "AG b1.feed_forward", "AG b1.attention", "RS b1.feed_forward", "AG b0.feed_forward",
                                   "RS b1.attention", "AG b0.attention", "AG b0.feed_forward", "AG b0.attention", "RS b0.feed_forward", "RS b0.attention",
                                   "RS root"});
}

TEST_CASE("linear layers under a checkpoint: six of seven are gathered three times, the down projection twice") {
  const auto gathers = [](const StepSpec& spec, const char* name) {
    const Words words = gathers_and_reductions(spec);
    return std::count(words.begin(), words.end(), std::string("AG b1.") + name);
  };
  const StepSpec one = checkpointed(Framework::fsdp1, Wrap::linears), two = checkpointed(Framework::fsdp2, Wrap::linears);
  for (const char* name : {"q", "k", "v", "out", "gate", "up"}) {
    CAPTURE(name);
    CHECK(gathers(one, name) == 3);
    CHECK(gathers(two, name) == 2);
  }
  CHECK(gathers(one, "down") == 2);
  CHECK(gathers(two, "down") == 2);
}

TEST_CASE("units inside recomputed blocks are proven clean kernel by kernel") {
  for (const Framework framework : {Framework::fsdp1, Framework::fsdp2}) {
    for (const Wrap wrap : {Wrap::size_based, Wrap::attention_and_ffn, Wrap::linears}) {
      for (const BlockLayout layout : {BlockLayout::sequential, BlockLayout::parallel, BlockLayout::sandwich}) {
        for (const bool reentrant : {false, true}) {
          if (reentrant && framework == Framework::fsdp2) continue;
          StepSpec spec = checkpointed(framework, wrap);
          spec.model.layout = layout;
          spec.recompute.reentrant = reentrant;
          spec.recompute.mode = reentrant ? RecomputeMode::full : RecomputeMode::every_k;
          const auto findings = check(build_program(spec, 3));
          CHECK_MESSAGE(findings.empty(), (findings.empty() ? "" : findings.front().text));
        }
      }
    }
  }
}

TEST_CASE("what units inside blocks do not go with") {
  const auto key = [](auto change) {
    StepSpec spec = inside(Framework::fsdp1, Wrap::attention_and_ffn);
    change(spec);
    const auto broken = broken_rule(spec);
    return std::string(broken ? broken->key : "");
  };
  CHECK(key([](StepSpec&) {}).empty());
  CHECK(key([](StepSpec& s) { s.recompute.mode = RecomputeMode::full; }) == "/recompute/nesting");  // inside a unit that is a part of the block
  CHECK(key([](StepSpec& s) { s.recompute.mode = RecomputeMode::full, s.recompute.nesting = Nesting::outside; }).empty());
  CHECK(key([](StepSpec& s) { s.recompute.mode = RecomputeMode::per_op; }) == "/recompute/ops");
  CHECK(key([](StepSpec& s) {
          s.recompute.mode = RecomputeMode::per_op, s.recompute.ops = RecomputeOps::attention, s.kernels.attention = Attention::unfused;
        }).empty());
  CHECK(key([](StepSpec& s) {
          s.recompute.mode = RecomputeMode::full, s.recompute.nesting = Nesting::outside, s.model.experts = 4, s.model.active_experts = 2;
        }) == "/recompute/mode");
  CHECK(key([](StepSpec& s) {
          s.recompute.mode = RecomputeMode::full, s.recompute.nesting = Nesting::outside, s.policy.release = Release::before_2_1,
          s.policy.limit_all_gathers = false;
        }) == "/recompute/nesting");
  CHECK(key([](StepSpec& s) { s.kernels.set = KernelSet::fixed; }) == "/policy/wrap");
  CHECK(key([](StepSpec& s) { s.policy.blocks_per_unit = 2; }) == "/policy/blocks_per_unit");
  CHECK(key([](StepSpec& s) { s.policy.framework = Framework::ddp, s.precision.reduce = s.precision.master; }) == "/policy/wrap");
}

}  // namespace
}  // namespace stepcast::program
