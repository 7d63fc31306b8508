// Parts of the inference by hand: linear layers, orders of issue, units, the draft. docs/diagnose.md, "From a trace to a scenario".
#include <doctest/doctest.h>

#include <string_view>
#include <utility>

#include "cli/diagnose/draft.hpp"
#include "cli/diagnose/issue_order.hpp"
#include "cli/diagnose/linears.hpp"
#include "cli/diagnose/units.hpp"
#include "program/model.hpp"
#include "scenarios/presets.hpp"

using namespace stepcast::cli;
namespace profile = stepcast::trace::profile;
using profile::Pass;
using stepcast::hw::Dtype;

namespace {

/// One letter a deed: G all-gather, R reduce-scatter, A all-reduce of gradients, c computation; forward before the '|', backward behind it.
profile::Workload issued(std::string_view deeds) {
  profile::Workload work;
  work.messages = {{"allgather", 1e9, 8, Dtype::bf16}, {"reducescatter", 2e9, 8, Dtype::fp32}, {"allreduce", 1e9, 4, Dtype::fp32}};
  Pass pass = Pass::forward;
  for (const char c : deeds) {
    if (c == '|') pass = Pass::backward;
    else if (c == 'c') work.order.push_back({{}, pass, {}});
    else work.order.push_back({{}, pass, static_cast<std::uint32_t>(std::string_view("GRA").find(c))});
  }
  return work;
}

profile::CountedProduct product(std::int64_t m, std::int64_t k, std::int64_t n, std::int64_t count, bool biased = false) {
  return {{1, m, n, k}, Dtype::bf16, Pass::forward, biased, count};
}

}  // namespace

TEST_CASE("the order of issue tells how a backward prefetches") {
  const IssueOrder none = issue_order(issued("GGcGcGc|GcRGcRGcRR"), 1);
  CHECK(none.lead == 0);
  CHECK(none.before_first == 2);
  CHECK(none.forward_gathers == 4);
  CHECK(none.backward_gathers == 3);
  CHECK(none.reductions == 4);
  const IssueOrder pre = issue_order(issued("GGcGcGc|GGcRGcRcRR"), 1);
  CHECK(pre.lead == 1);
  CHECK(pre.before_computation);
  const IssueOrder post = issue_order(issued("GGcGcGc|GcGRcGRcRR"), 1);
  CHECK(post.lead == 1);
  CHECK_FALSE(post.before_computation);
  CHECK(issue_order(issued("GGGcGcc|GGGcRcRcRR"), 1).before_first == 3);
  CHECK(issue_order(issued("GGGcGcc|GGGcRcRcRR"), 1).lead == 2);
  CHECK(post.gathered == Dtype::bf16);
  CHECK(post.reduced == Dtype::fp32);
  CHECK(issue_order(issued("GGcGc|cRAcRA"), 1).all_reduces == 2);
  CHECK(issue_order(issued("GGcGc|cRAcRA"), 1).backward_gathers == 0);
}

TEST_CASE("of several micro-batches the last counts for the order, all for the numbers") {
  const IssueOrder order = issue_order(issued("GGcGc|GcRGcRR"), 1);
  profile::Workload twice = issued("GGcGc|GcRGcRR");
  const profile::Workload again = issued("GGcGc|GGcRcRR");
  twice.order.insert(twice.order.end(), again.order.begin(), again.order.end());
  CHECK(order.lead == 0);
  CHECK(issue_order(twice, 2).lead == 1);
  CHECK(issue_order(twice, 2).reductions == 3);
}

TEST_CASE("linear layers: the width is the side that all have") {
  profile::Workload work;
  // Two forwards of three blocks: q, out 64 x 64; k, v 64 -> 16; gate, up 64 -> 160; down; head 64 -> 1000.
  work.products = {product(128, 64, 64, 12), product(128, 64, 16, 12, true), product(128, 64, 160, 12),
                   product(128, 160, 64, 6), product(128, 64, 1000, 2),      product(4, 7, 9, 2)};
  const Linears linears = linears_of(work, 2);
  CHECK(linears.tokens == 128);
  CHECK(linears.hidden == 64);
  CHECK(linears.of(64, 64) == 6);
  CHECK(linears.of(160, 64) == 3);
  CHECK(linears.of(64, 1000) == 1);
  CHECK(linears.with_bias(64, 16) == 6);
  CHECK(linears.with_bias(64, 64) == 0);
  CHECK(linears.of(7, 9) == 0);
}

TEST_CASE("adapters: a narrow middle beside a layer of the same ends") {
  profile::Workload work;
  // Two blocks: q, k, v, out 64 x 64; up 64 -> 256, down; head. Adapters of rank 4 on q and v.
  work.products = {product(128, 64, 64, 8),   product(128, 64, 256, 2), product(128, 256, 64, 2),
                   product(128, 64, 1000, 1), product(128, 64, 4, 4),   product(128, 4, 64, 4)};
  const Linears linears = linears_of(work, 1);
  CHECK(linears.adapter_rank == 4);
  CHECK(linears.adapters == 4);
  CHECK(linears.hidden == 64);
  CHECK(linears.of(64, 4) == 0);
  CHECK(linears.of(64, 64) == 8);
  // A latent attention's middle has no layer beside it.
  work.products.back() = product(128, 4, 96, 4);
  CHECK(linears_of(work, 1).adapter_rank == 0);
  // A feed-forward network's middle is wide.
  work.products = {product(128, 64, 64, 8), product(128, 64, 256, 2), product(128, 256, 64, 2)};
  CHECK(linears_of(work, 1).adapter_rank == 0);
}

TEST_CASE("experts: the router's columns, and rows against the tokens") {
  profile::Workload work;
  work.attention = {{{2, 8, 8, 64, 64, 8, false}, Dtype::bf16, Pass::forward, 6}};
  // Two forwards of three blocks; 8 experts, of which each token takes 2: 256 rows, unevenly divided.
  work.products = {product(128, 64, 64, 24), product(128, 64, 8, 6), product(128, 64, 1000, 2)};
  for (const auto& [rows, times] : {std::pair<std::int64_t, std::int64_t>{40, 24}, {24, 24}}) {
    work.products.push_back(product(rows, 64, 96, 2 * times));
    work.products.push_back(product(rows, 96, 64, times));
  }
  const Linears linears = linears_of(work, 2);
  CHECK(linears.tokens == 128);
  CHECK(linears.hidden == 64);
  const ExpertsSeen seen = experts_seen(work, linears, 2, 3);
  CHECK(seen.count == 8);
  CHECK(seen.active == 2);
  CHECK(seen.ffn == 96);
  CHECK(seen.gated);
  work.products.resize(3);
  CHECK(experts_seen(work, linears_of(work, 2), 2, 3).count == 0);
}

TEST_CASE("experts in grouped products: by the matrices of one call, or by the router where a rank has but some of them") {
  profile::Workload work;
  work.attention = {{{2, 8, 8, 64, 64, 8, false}, Dtype::bf16, Pass::forward, 3}};
  const auto grouped = [](std::int64_t k, std::int64_t n, std::int64_t groups, std::int64_t count) {
    return profile::CountedProduct{{1, 256, n, k, groups}, Dtype::bf16, Pass::forward, false, count};
  };
  const auto seen = [&](std::vector<profile::CountedProduct> products) {
    work.products = {product(128, 64, 64, 12), product(128, 64, 1000, 1)};
    work.products.insert(work.products.end(), products.begin(), products.end());
    return experts_seen(work, linears_of(work, 1), 1, 3);
  };
  // Gate and up apart, no router that is a product.
  const ExpertsSeen apart = seen({grouped(64, 96, 8, 6), grouped(96, 64, 8, 3)});
  CHECK(apart.count == 8);
  CHECK(apart.active == 2);
  CHECK(apart.ffn == 96);
  CHECK(apart.gated);
  CHECK(apart.grouped);
  // Gate and up in one; 2 of the router's 16 experts are here.
  const ExpertsSeen together = seen({product(128, 64, 16, 3), grouped(64, 192, 2, 3), grouped(96, 64, 2, 3)});
  CHECK(together.count == 16);
  CHECK(together.ffn == 96);
  CHECK(together.gated);
  // As many rows as tokens: each takes one expert; the narrowest layer is no router.
  profile::CountedProduct up = grouped(64, 96, 4, 3), down = grouped(96, 64, 4, 3);
  up.product.m = down.product.m = 128;
  const ExpertsSeen one = seen({product(128, 64, 30, 3), up, down});
  CHECK(one.count == 4);
  CHECK(one.active == 1);
  CHECK_FALSE(one.gated);
}

TEST_CASE("attention: fused, or by its batched products") {
  profile::Workload fused, unfused;
  fused.attention = {{{2, 8, 2, 64, 64, 16, false}, Dtype::bf16, Pass::forward, 6}, {{2, 8, 2, 64, 64, 16, true}, Dtype::bf16, Pass::backward, 6}};
  const AttentionSeen seen = attention_seen(fused, 2, 128);
  CHECK(seen.layers == 3);
  CHECK(seen.batch == 2);
  CHECK(seen.length == 64);
  CHECK(seen.heads == 8);
  CHECK(seen.kv_heads == 2);
  unfused.products = {{{16, 64, 64, 16}, Dtype::bf16, Pass::forward, false, 6}, {{16, 64, 16, 64}, Dtype::bf16, Pass::forward, false, 6}};
  const AttentionSeen products = attention_seen(unfused, 2, 128);
  CHECK(products.layers == 3);
  CHECK(products.batch == 2);
  CHECK(products.heads == 8);
  CHECK(products.head_dim == 16);
  CHECK(attention_seen({}, 2, 128).layers == 0);
}

TEST_CASE("units by the sizes of what is gathered") {
  const auto model = stepcast::scenarios::preset("llama-2-7b").model;
  const auto block = static_cast<double>(stepcast::program::parameters_per_block(model)), root = static_cast<double>(stepcast::program::root_parameters(model));
  const auto blocks = units_seen({{block + 24, 32}, {root, 1}}, model);
  REQUIRE(blocks);
  CHECK(blocks->wrap == stepcast::program::Wrap::blocks);
  CHECK(blocks->blocks_per_unit == 1);
  CHECK_FALSE(blocks->tied);
  CHECK(blocks->ends_known);
  CHECK(units_seen({{2 * block, 16}, {root, 1}}, model)->blocks_per_unit == 2);
  CHECK(units_seen({{32 * block + root, 1}}, model)->wrap == stepcast::program::Wrap::model);
  const double table = 32000.0 * 4096;
  CHECK(units_seen({{block, 32}, {table, 1}, {table + 4096, 1}}, model)->wrap == stepcast::program::Wrap::embedding_and_head);
  CHECK(units_seen({{block, 32}, {table + 4096, 1}}, model)->tied);
  CHECK_FALSE(units_seen({{1000, 32}}, model));
}

TEST_CASE("what the simulator has not is missing, and no setting fills it in") {
  ScenarioDraft draft;
  draft.unsupported("/tensor_parallel", "all-reduces in the forward");
  REQUIRE(draft.find("/tensor_parallel"));
  CHECK(draft.find("/tensor_parallel")->certainty == Certainty::missing);
  CHECK_FALSE(draft.find("/tensor_parallel")->settable);
  CHECK(draft.document("x")["why"] == "Inferred from a trace. Missing: /tensor_parallel.");
  CHECK_FALSE(draft.document("x").contains("tensor_parallel"));
}

TEST_CASE("a draft says what is guessed and what is missing") {
  ScenarioDraft draft;
  draft.seen("/model/hidden", 64, "a");
  draft.guess("/cluster/nodes", 4, "b");
  draft.missing("/cluster/node", "c");
  CHECK_FALSE(draft.complete());
  const auto document = draft.document("x");
  CHECK(document["model"]["hidden"] == 64);
  CHECK_FALSE(document["cluster"].contains("node"));
  CHECK(document["why"] == "Inferred from a trace. Guessed: /cluster/nodes. Missing: /cluster/node.");
  draft.given("/cluster/node", "dgx-a100", "user");
  CHECK(draft.complete());
  CHECK(draft.number("/cluster/nodes") == 4);
  CHECK(draft.text("/cluster/node") == "dgx-a100");
}
