// DeepSpeed's ZeRO stages 1 and 2: when which bucket is reduced, where the host waits, and memory against hand sums.
#include <doctest/doctest.h>

#include <numeric>

#include "hw_models/input_error.hpp"
#include "program/build.hpp"
#include "program/check.hpp"
#include "program/model.hpp"
#include "program/zero_stage12.hpp"
#include "tests/support/ledger.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using test::of;
using Words = std::vector<std::string>;

using test::kSquare, test::kTable, test::kWide;
constexpr std::int64_t kNorm = 4096;

StepSpec zero(Framework framework, std::int64_t layers = 2) {
  StepSpec spec = test::reference_step();
  spec.model.layers = layers;
  spec.policy.framework = framework;
  spec.optimizer.implementation = OptimizerImpl::fused;
  return spec;
}

/// Elements of the all-reduced buckets of a step, in order.
std::vector<std::int64_t> buckets(const StepSpec& spec) {
  const Program p = build_program(spec, 2);
  std::vector<std::int64_t> elements;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind == OpKind::collective && p.collectives[op.id].label == "all_reduce bucket")
      elements.push_back(p.collectives[op.id].shape.bytes / hw::bytes_per_element(spec.precision.reduce));
  }
  return elements;
}

Words calls(const StepSpec& spec) {
  const Program p = build_program(spec, 2);
  return test::words(p, p.steps[1], {OpKind::launch, OpKind::collective, OpKind::host_wait});
}

TEST_CASE("stage 1 fills buckets in registration order behind the backward, stage 2 in the order of the backward") {
  StepSpec spec = zero(Framework::zero1, 1);
  spec.policy.reduce_bucket_size = 150'000'000;
  // Embedding, norm1 | q, k, v, out, norm2, gate ... closed by what would not fit any more.
  CHECK(buckets(spec) == std::vector<std::int64_t>{kTable + kNorm + kSquare, 3 * kSquare + kNorm + 2 * kWide, kWide + kNorm, kTable});
  spec.policy.framework = Framework::zero2;
  // Head | norm, down, up, gate, norm2 | out, q, k, v, norm1 | embedding.
  CHECK(buckets(spec) == std::vector<std::int64_t>{kTable + kNorm, 3 * kWide + kNorm, 4 * kSquare + kNorm, kTable});
}

TEST_CASE("stage 1 reduces in the last micro-batch, stage 2 in every one; both gather the parameters once") {
  for (const bool overlap : {false, true}) {
    StepSpec spec = zero(Framework::zero1);
    spec.batch.grad_accum = 3;
    spec.policy.overlap_comm = overlap;
    const std::int64_t all = parameters(spec.model);
    const auto sum = [](const std::vector<std::int64_t>& list) { return std::accumulate(list.begin(), list.end(), std::int64_t{0}); };
    CHECK(sum(buckets(spec)) == all);
    CHECK(test::count_prefix(calls(spec), "AG") == 1);
    CHECK(test::count_of(calls(spec), "kernel AccumulateGrad add_") == 2 * (2 * 9 + 3));
    spec.policy.framework = Framework::zero2;
    CHECK(sum(buckets(spec)) == 3 * all);
    CHECK(test::count_prefix(calls(spec), "AG") == 1);
    CHECK(test::count_of(calls(spec), "kernel aten::add_ averaged gradients") == 2);
    CHECK(test::count_of(calls(spec), "host waits device drained") == (overlap ? 3 : 0));
  }
}

TEST_CASE("a gradient larger than the bucket is reduced where it is") {
  StepSpec spec = zero(Framework::zero2, 1);
  spec.policy.reduce_bucket_size = 20'000'000;
  const Words all = calls(spec);
  CHECK(test::count_of(all, "kernel aten::copy_ into ipg_buffer") == 12 - 5);  // not head, gate, up, down, embedding
  CHECK(buckets(spec).front() == kTable);
  CHECK(check(build_program(spec, 3)).empty());
}

TEST_CASE("the end of a bucket: divided, flattened, reduced, the own slice copied back and kept") {
  StepSpec spec = zero(Framework::zero2, 1);
  const Words all = calls(spec);
  const auto at = std::find(all.begin(), all.end(), "AR");
  REQUIRE(at != all.end());
  CHECK(Words(at - 2, at + 3) == Words{"kernel aten::div_ gradients", "kernel aten::cat flatten bucket", "AR", "kernel aten::copy_ averaged gradients",
                                       "kernel aten::copy_ own gradients"});
  spec.policy.reduce_scatter = false;
  const Words plain = calls(spec);
  const auto there = std::find(plain.begin(), plain.end(), "AR");
  CHECK(Words(there - 1, there + 2) == Words{"kernel aten::div_ gradients", "AR", "kernel aten::copy_ own gradients"});
}

TEST_CASE("another communication type is cast to and from") {
  StepSpec spec = zero(Framework::zero2, 1);
  spec.precision.reduce = hw::Dtype::fp32;
  const Words all = calls(spec);
  CHECK(test::count_of(all, "kernel aten::to communication type") == static_cast<long>(buckets(spec).size()));
  CHECK(buckets(spec).back() > 0);
}

TEST_CASE("the optimizer's step: norm, fp32 gradients, update, copy to the parameters, all-gather in parts") {
  StepSpec spec = zero(Framework::zero2, 1);
  spec.policy.allgather_bucket_size = parameters(spec.model) / 3;
  const Program p = build_program(spec, 2);
  const Words all = test::words(p, p.steps[1], {OpKind::launch, OpKind::collective});
  const auto norm = std::find(all.begin(), all.end(), "kernel aten::norm scalar");
  CHECK(Words(norm + 3, all.end()) == Words{"kernel aten::cat flatten gradients", "kernel aten::to fp32 gradient", "kernel aten::mul_ unscale and clip",
                                            "kernel aten::_fused_adamw_", "kernel aten::copy_ updated partition", "AG bit16_parameters", "AG bit16_parameters",
                                            "AG bit16_parameters"});
  std::int64_t gathered = 0;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind == OpKind::collective && p.collectives[op.id].shape.kind == hw::CollectiveKind::all_gather) gathered += p.collectives[op.id].shape.bytes;
  }
  CHECK(gathered == 2 * 32 * ZeroStage12::partition_of(spec));
}

TEST_CASE("memory: 2 P of parameters, 12 P / N of partitions, 2 P / N of gradients; buckets of the size that is asked for") {
  for (const Framework stage : {Framework::zero1, Framework::zero2}) {
    StepSpec spec = zero(stage);
    spec.policy.reduce_bucket_size = 50'000'000;
    const std::int64_t all = parameters(spec.model), part = 2 * ((all + 63) / 64);
    CHECK(ZeroStage12::partition_of(spec) == part);
    auto l = test::ledger(build_program(spec, 2));
    CHECK(of(l.at_end["optimizer"], Owner::parameters) == 2 * 32 * part + 4 * part);
    CHECK(of(l.at_end["optimizer"], Owner::optimizer) == 8 * part);
    CHECK(of(l.at_end["optimizer"], Owner::gradients) == 0);
    CHECK(of(l.at_end["backward"], Owner::gradients) == 2 * part);
    CHECK(of(l.peak["optimizer"], Owner::gradients) == 2 * part + 2 * part + 0 * part + 2 * part);  // partition and flat copy, then flat and fp32
    // Stage 1 holds all gradients until the backward's end; stage 2 those of a bucket and of one block.
    const std::int64_t block = parameters_per_block(spec.model);
    if (stage == Framework::zero1) CHECK(of(l.peak["backward"], Owner::gradients) >= 2 * all);
    else CHECK(of(l.peak["backward"], Owner::gradients) <= 2 * (std::max(block, kTable) + kWide) + 2 * part);
    CHECK(of(l.peak["backward"], Owner::reduction) >= 2 * 50'000'000);
    CHECK(of(l.at_end["backward"], Owner::reduction) == 0);
    spec.policy.overlap_comm = true;
    l = test::ledger(build_program(spec, 2));
    CHECK(of(l.peak["backward"], Owner::reduction) >= 2 * 2 * 50'000'000);
  }
}

TEST_CASE("stage 1 inside groups: gradients are reduced among all, the optimizer's state and the updated parameters are a group's") {
  StepSpec spec = zero(Framework::zero1);  // 4 nodes of 8
  const std::int64_t whole = ZeroStage12::partition_of(spec);
  spec.policy.shard_group_size = 8;
  CHECK(ZeroStage12::partition_of(spec) == doctest::Approx(4.0 * static_cast<double>(whole)).epsilon(1e-6));
  const Program p = build_program(spec, 2);
  int reduced = 0, gathered = 0;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind != OpKind::collective) continue;
    const CollectiveEntry& entry = p.collectives[op.id];
    const bool bucket = entry.label == "all_reduce bucket", parameters = entry.label == "all_gather updated parameters";
    const hw::GroupShape group{8, 1};
    reduced += bucket, gathered += parameters;
    CHECK((!bucket || entry.shape.group == spec.world));
    CHECK((!parameters || entry.shape.group == group));
  }
  CHECK(reduced > 0);
  CHECK(gathered > 0);
  CHECK(check(p).empty());
  spec.policy.shard_group_size = 16;
  CHECK(ZeroStage12::partition_of(spec) == doctest::Approx(2.0 * static_cast<double>(whole)).epsilon(1e-6));
  spec.policy.shard_group_size = 5;
  CHECK_THROWS_AS(build_program(spec, 1), InputError);
  spec.policy.shard_group_size = 8;
  spec.policy.framework = Framework::zero2;
  CHECK_THROWS_AS(build_program(spec, 1), InputError);
}

TEST_CASE("one rank reduces and gathers nothing") {
  StepSpec spec = zero(Framework::zero2);
  spec.world = {1, 1};
  CHECK(buckets(spec).empty());
  CHECK(test::count_prefix(calls(spec), "AG") == 0);
}

}  // namespace
}  // namespace stepcast::program
