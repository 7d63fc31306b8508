// NO_SHARD and hybrid sharding of FSDP1: counts, sizes and groups of the collectives, order and streams, gradients across micro-batches, and early releases.
// Llama-2-7B on 4 x 8 ranks: a block has 202,383,360 parameters, the root 262,148,096.
#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "program/build.hpp"
#include "program/check.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using Words = std::vector<std::string>;
using test::count_prefix;

constexpr std::int64_t kBlock = 202'383'360, kRoot = 262'148'096;

StepSpec with(Sharding sharding, std::int64_t layers) {
  StepSpec spec = test::fixed_step(layers);
  spec.policy.sharding = sharding;
  return spec;
}

using test::collectives;

const CollectiveEntry& entry(const Program& p, hw::CollectiveKind kind, bool root) {
  const auto at =
      std::find_if(p.collectives.begin(), p.collectives.end(), [&](const CollectiveEntry& e) { return e.shape.kind == kind && e.root_unit == root; });
  REQUIRE(at != p.collectives.end());
  return *at;
}

TEST_CASE("collectives per step of each strategy: 32 blocks and the root") {
  struct Row {
    Sharding sharding;
    long gathers, scatters, reduces;
  };
  const Row rows[] = {{Sharding::full_shard, 65, 33, 0},
                      {Sharding::shard_grad_op, 33, 33, 0},
                      {Sharding::no_shard, 0, 0, 33},
                      {Sharding::hybrid_shard, 65, 33, 33},
                      {Sharding::hybrid_shard_zero2, 33, 33, 33}};
  for (const Row& row : rows) {
    CAPTURE(static_cast<int>(row.sharding));
    const Words all = collectives(with(row.sharding, 32));
    CHECK(count_prefix(all, "AG") == row.gathers);
    CHECK(count_prefix(all, "RS") == row.scatters);
    CHECK(count_prefix(all, "AR") == row.reduces);
  }
}

TEST_CASE("accumulation: three micro-batches, with and without no_sync") {
  const auto counts = [](Sharding sharding, bool no_sync) {
    StepSpec spec = with(sharding, 32);
    spec.batch.grad_accum = 3;
    spec.policy.no_sync = no_sync;
    const Words all = collectives(spec);
    return std::vector<long>{count_prefix(all, "AG"), count_prefix(all, "RS"), count_prefix(all, "AR")};
  };
  CHECK(counts(Sharding::hybrid_shard, false) == std::vector<long>{3 * 65, 99, 99});
  CHECK(counts(Sharding::hybrid_shard, true) == std::vector<long>{3 * 65, 33, 33});
  CHECK(counts(Sharding::hybrid_shard_zero2, true) == std::vector<long>{33, 33, 33});  // parameters stay until the last micro-batch
  CHECK(counts(Sharding::no_shard, false) == std::vector<long>{0, 0, 99});
  CHECK(counts(Sharding::no_shard, true) == std::vector<long>{0, 0, 33});
}

TEST_CASE("hybrid sharding: gathers and reduce-scatters in the node, all-reduce of each shard over four nodes") {
  const Program p = build_program(with(Sharding::hybrid_shard, 2), 1);
  const CollectiveEntry &gather = entry(p, hw::CollectiveKind::all_gather, false), &scatter = entry(p, hw::CollectiveKind::reduce_scatter, true),
                        &reduce = entry(p, hw::CollectiveKind::all_reduce, false);
  CHECK(gather.shape.group == hw::GroupShape{8, 1});
  CHECK(gather.communicator == Communicator::shard);
  CHECK(gather.shape.bytes == 2 * kBlock);
  CHECK(scatter.shape.group == hw::GroupShape{8, 1});
  CHECK(scatter.shape.bytes == 2 * kRoot);
  CHECK(reduce.shape.group == hw::GroupShape{1, 4});
  CHECK(reduce.communicator == Communicator::replica);
  CHECK(reduce.shape.bytes == 2 * 25'297'920);  // 202,383,360 / 8 elements
}

TEST_CASE("shard groups of another size: half a node, two nodes") {
  StepSpec spec = with(Sharding::hybrid_shard, 2);
  const auto groups = [&](std::int64_t size) {
    spec.policy.shard_group_size = size;
    const Program p = build_program(spec, 1);
    return std::pair{entry(p, hw::CollectiveKind::all_gather, false).shape.group, entry(p, hw::CollectiveKind::all_reduce, false).shape.group};
  };
  CHECK(groups(4) == std::pair{hw::GroupShape{4, 1}, hw::GroupShape{2, 4}});
  CHECK(groups(16) == std::pair{hw::GroupShape{8, 2}, hw::GroupShape{1, 2}});
  spec.policy.shard_group_size = 32;  // one replica: nothing to all-reduce
  CHECK(count_prefix(collectives(spec), "AR") == 0);
  for (const std::int64_t wrong : {1, 3, 12, 24, 64}) {
    spec.policy.shard_group_size = wrong;
    CHECK_THROWS_AS(build_program(spec, 1), InputError);
  }
  spec = test::fixed_step(2);
  spec.policy.shard_group_size = 8;
  CHECK_THROWS_WITH_AS(
      build_program(spec, 1),
      "scenario: /policy/shard_group_size: belongs to hybrid sharding and to \"zero1\"; use sharding \"HYBRID_SHARD\" or \"_HYBRID_SHARD_ZERO2\"", InputError);
}

TEST_CASE("hybrid sharding: the all-reduce has a stream of its own that waits for the reduce-scatter, and only the final callback waits for it") {
  const Program p = build_program(with(Sharding::hybrid_shard, 2), 2);
  const Words all = test::words(p, p.steps[1], {OpKind::collective, OpKind::wait});
  const auto from = std::find(all.begin(), all.end(), "RS b1");
  CHECK(Words(from - 1, all.end()) ==
        Words{"post_backward waits tail of compute", "RS b1", "all_reduce waits tail of post_backward", "AR", "compute waits tail of unshard",
              "post_backward waits tail of compute", "RS b0", "all_reduce waits tail of post_backward", "AR", "post_backward waits tail of compute", "RS root",
              "all_reduce waits tail of post_backward", "AR", "compute waits tail of post_backward", "compute waits tail of all_reduce"});
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind == OpKind::collective && p.collectives[op.id].shape.kind == hw::CollectiveKind::all_reduce) CHECK(op.stream == Stream::all_reduce);
  }
}

/// The kernels on a gradient between its concatenation and the optimizer, for the one block of a model, in order, with their streams.
Words gradient_path(StepSpec spec) {
  spec.kernels.set = KernelSet::pytorch_eager;
  spec.optimizer.clip_grad_norm = false;
  const Program p = build_program(spec, 1);
  Words result;
  for (const Op& op : p.slice(p.steps[0])) {
    const bool is_launch = op.kind == OpKind::launch, is_collective = op.kind == OpKind::collective;
    if ((!is_launch && !is_collective) || p.operands_of(op).empty()) continue;
    const std::string& label = p.buffers[p.operands_of(op)[0].buffer].label;
    const bool of_gradient = label.starts_with("b0.") && (label.find("grad") != std::string::npos || label.ends_with("reduced"));
    const std::string what = is_launch ? p.kernels[op.id].op : p.collectives[op.id].label;
    const bool own = is_collective || what.starts_with("FSDP") || what.starts_with("AccumulateGrad");
    if (of_gradient && own) result.push_back(std::string(name(op.stream)) + ": " + what);
  }
  return result;
}

TEST_CASE("gradient path of hybrid sharding, one block: divisors of all 32 ranks, accumulation behind the all-reduce") {
  StepSpec spec = with(Sharding::hybrid_shard, 1);
  CHECK(gradient_path(spec) == Words{"post_backward: FSDP pre-divide", "post_backward: reduce_scatter block", "all_reduce: all_reduce block",
                                     "all_reduce: FSDP post-divide", "all_reduce: FSDP cast gradient to master type"});
  spec.precision.reduce = hw::Dtype::fp32;
  spec.batch.grad_accum = 2;
  Words twice{"post_backward: FSDP cast gradient to reduce type", "post_backward: FSDP pre-divide", "post_backward: reduce_scatter block",
              "all_reduce: all_reduce block", "all_reduce: FSDP post-divide"};
  const Words once = twice;
  twice.insert(twice.end(), once.begin(), once.end());
  twice.push_back("all_reduce: FSDP accumulate sharded gradient");
  CHECK(gradient_path(spec) == twice);
}

TEST_CASE("gradient path of NO_SHARD, one block: the whole gradient, on post-backward; later micro-batches add to the reduced one") {
  StepSpec spec = with(Sharding::no_shard, 1);
  const Words reduction{"post_backward: FSDP pre-divide", "post_backward: all_reduce block", "post_backward: FSDP post-divide"};
  Words expected = reduction;
  expected.push_back("post_backward: FSDP cast gradient to master type");
  CHECK(gradient_path(spec) == expected);
  spec.batch.grad_accum = 2;
  expected.push_back("compute: AccumulateGrad add_");
  expected.push_back("post_backward: FSDP cast gradient to reduce type");
  expected.insert(expected.end(), reduction.begin(), reduction.end());
  expected.push_back("post_backward: FSDP cast gradient to master type");
  CHECK(gradient_path(spec) == expected);
  spec.policy.no_sync = true;
  expected = {"compute: AccumulateGrad add_"};
  expected.insert(expected.end(), reduction.begin(), reduction.end());
  expected.push_back("post_backward: FSDP cast gradient to master type");
  CHECK(gradient_path(spec) == expected);
  spec.batch.grad_accum = 1;
  spec.precision = {hw::Dtype::bf16, hw::Dtype::bf16, hw::Dtype::bf16};
  CHECK(gradient_path(spec) == reduction);
  const Program p = build_program(with(Sharding::no_shard, 2), 1);
  CHECK(entry(p, hw::CollectiveKind::all_reduce, false).shape.bytes == 2 * kBlock);
  CHECK(entry(p, hw::CollectiveKind::all_reduce, false).shape.group == hw::GroupShape{8, 4});
}

TEST_CASE("the norm of clipping is all-reduced in the shard group; without shards not at all") {
  const auto norm_groups = [](Sharding sharding) {
    StepSpec spec = with(sharding, 1);
    spec.kernels.set = KernelSet::pytorch_eager;
    std::vector<int> result;
    for (const CollectiveEntry& e : build_program(spec, 1).collectives) {
      if (e.label == "all_reduce gradient norm") result.push_back(e.shape.group.ranks());
    }
    return result;
  };
  CHECK(norm_groups(Sharding::full_shard) == std::vector<int>{32});
  CHECK(norm_groups(Sharding::hybrid_shard) == std::vector<int>{8});
  CHECK(norm_groups(Sharding::no_shard).empty());
}

TEST_CASE("before 2.1: collectives on c10d's stream, between waits of the caller's stream, and their tensors marked as used there") {
  StepSpec spec = test::reference_step();
  spec.model.layers = 2;
  spec.policy.release = Release::before_2_1;
  const Program p = build_program(spec, 2);
  long on_nccl = 0, marked = 0;
  for (const Op& op : p.slice(p.steps[1])) {
    const bool norm = op.kind == OpKind::collective && p.collectives[op.id].label == "all_reduce gradient norm";
    on_nccl += op.kind == OpKind::collective && !norm && op.stream == Stream::nccl ? 1 : 0;
    marked += op.kind == OpKind::record_stream && op.stream == Stream::nccl ? 1 : 0;
  }
  CHECK(on_nccl == 5 + 3);
  CHECK(marked == 2 * (5 + 3));
  CHECK(check(p).empty());
  spec.policy.release = Release::from_2_8;
  const StepSpec later = [&] {
    StepSpec s = spec;
    s.policy.release = Release::from_2_1;
    return s;
  }();
  CHECK(build_program(spec, 2).ops == build_program(later, 2).ops);
}

TEST_CASE("zero_grad without set_to_none: gradients live on, zeroed, and each step adds to them") {
  StepSpec spec = test::reference_step();
  spec.model.layers = 2;
  spec.optimizer.zero_grad_set_to_none = false;
  const Program p = build_program(spec, 3);
  const Words launches = test::words(p, p.steps[2], {OpKind::launch});
  CHECK(count_prefix(launches, "kernel aten::zero_ gradient") == 3);
  CHECK(count_prefix(launches, "kernel FSDP accumulate sharded gradient") == 3);
  CHECK(p.steps[2] == p.steps[1]);
  CHECK(check(p).empty());
}

}  // namespace
}  // namespace stepcast::program
