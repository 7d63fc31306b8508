// Issue order of collectives, prefetching, accumulation, strategies and streams of FSDP1, on fixed-cost programs where nothing else distracts.
#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "program/build.hpp"
#include "program/check.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using Words = std::vector<std::string>;
using test::count_of;
using test::count_prefix;

using test::collectives;

TEST_CASE("BACKWARD_PRE: AG(i-1) is issued before RS(i)") {
  CHECK(collectives(test::fixed_step(3)) == Words{"AG root", "AG b0", "AG b1", "AG b2",  // forward; the last block is freed after it too
                                                  "AG b2",                               // root's pre-backward
                                                  "AG b1", "RS b2", "AG b0", "RS b1", "RS b0", "RS root"});
}

TEST_CASE("BACKWARD_POST: AG(i-1) in the post-backward of i, just before RS(i)") {
  StepSpec spec = test::fixed_step(3);
  spec.policy.backward_prefetch = BackwardPrefetch::post;
  CHECK(collectives(spec) == Words{"AG root", "AG b0", "AG b1", "AG b2", "AG b2", "AG b1", "RS b2", "AG b0", "RS b1", "RS b0", "RS root"});
  const Program p = build_program(spec, 2);
  const Words all = test::words(p, p.steps[1], {OpKind::collective, OpKind::launch});
  const auto at = std::find(all.begin(), all.end(), "RS b2");
  CHECK(*(at - 1) == "AG b1");
  CHECK(*(at - 2) == "kernel block_backward");  // after all kernels of b2, unlike BACKWARD_PRE
}

TEST_CASE("NONE: AG(i-1) stands behind RS(i)") {
  StepSpec spec = test::fixed_step(3);
  spec.policy.backward_prefetch = BackwardPrefetch::none;
  CHECK(collectives(spec) == Words{"AG root", "AG b0", "AG b1", "AG b2", "AG b2", "RS b2", "AG b1", "RS b1", "AG b0", "RS b0", "RS root"});
}

TEST_CASE("forward_prefetch: the next all-gather before this unit's kernels, once the order is known") {
  StepSpec spec = test::fixed_step(2);
  spec.policy.forward_prefetch = true;
  const Program p = build_program(spec, 2);
  const auto begin = [&](int step) {
    Words all = test::words(p, p.steps[static_cast<std::size_t>(step)], {OpKind::collective, OpKind::launch});
    all.resize(6);
    return all;
  };
  CHECK(begin(0) == Words{"AG root", "kernel embedding_forward", "AG b0", "kernel block_forward", "AG b1", "kernel block_forward"});
  CHECK(begin(1) == Words{"AG root", "AG b0", "kernel embedding_forward", "AG b1", "kernel block_forward", "kernel block_forward"});
}

TEST_CASE("forward_prefetch: the second micro-batch of the first step knows the order") {
  StepSpec spec = test::fixed_step(2);
  spec.policy.forward_prefetch = true;
  spec.batch.grad_accum = 2;
  const Program p = build_program(spec, 1);
  const Words all = test::words(p, p.steps[0], {OpKind::collective, OpKind::launch});
  const auto second = std::find(std::find(all.begin(), all.end(), "RS root"), all.end(), "AG root");
  REQUIRE(second != all.end());
  CHECK(*(second + 1) == "AG b0");
}

TEST_CASE("counts per optimizer step: 32 blocks and the root") {
  const auto count = [](const StepSpec& spec, const char* prefix) { return count_prefix(collectives(spec), prefix); };
  StepSpec spec = test::fixed_step(32);
  CHECK(count(spec, "AG") == 1 + 32 + 32);
  CHECK(count(spec, "RS") == 33);
  spec.policy.sharding = Sharding::shard_grad_op;
  CHECK(count(spec, "AG") == 33);
  CHECK(count(spec, "RS") == 33);
  spec.policy.sharding = Sharding::full_shard;
  spec.batch.grad_accum = 3;
  CHECK(count(spec, "AG") == 3 * 65);
  CHECK(count(spec, "RS") == 3 * 33);
  spec.policy.no_sync = true;
  CHECK(count(spec, "AG") == 3 * 65);
  CHECK(count(spec, "RS") == 33);
  spec.policy.sharding = Sharding::shard_grad_op;  // parameters stay gathered until the last micro-batch
  CHECK(count(spec, "AG") == 33);
  CHECK(count(spec, "RS") == 33);
}

TEST_CASE("one rank: no collectives, no limiter events") {
  StepSpec spec = test::fixed_step(4);
  spec.world = {1, 1};
  CHECK(collectives(spec).empty());
}

TEST_CASE("units of several blocks share one all-gather") {
  StepSpec spec = test::fixed_step(5);
  spec.policy.blocks_per_unit = 2;  // b0 b1 | b2 b3 | b4
  CHECK(collectives(spec) == Words{"AG root", "AG b0", "AG b2", "AG b4", "AG b4", "AG b2", "RS b4", "AG b0", "RS b2", "RS b0", "RS root"});
}

TEST_CASE("fixed costs: each phase one kernel; streams and waits as always; nothing else costs host time") {
  const Program p = build_program(test::fixed_step(2), 1);
  const Words all = test::words(p, p.steps[0], {OpKind::launch, OpKind::collective, OpKind::wait});
  CHECK(all == Words{"unshard waits tail of compute",
                     "pre_unshard waits tail of compute",
                     "unshard waits tail of pre_unshard",
                     "AG root",
                     "compute waits tail of unshard",
                     "kernel embedding_forward",
                     "unshard waits tail of pre_unshard",
                     "AG b0",
                     "compute waits tail of unshard",
                     "kernel block_forward",
                     "unshard waits tail of pre_unshard",
                     "AG b1",
                     "compute waits tail of unshard",
                     "kernel block_forward",
                     "kernel head_forward",
                     "compute waits tail of unshard",
                     "unshard waits tail of pre_unshard",
                     "AG b1",
                     "kernel head_backward",
                     "compute waits tail of unshard",
                     "unshard waits tail of pre_unshard",
                     "AG b0",
                     "kernel block_backward",
                     "post_backward waits tail of compute",
                     "RS b1",
                     "compute waits tail of unshard",
                     "kernel block_backward",
                     "post_backward waits tail of compute",
                     "RS b0",
                     "kernel embedding_backward",
                     "post_backward waits tail of compute",
                     "RS root",
                     "compute waits tail of post_backward",
                     "kernel optimizer"});
  for (const Op& op : p.ops) {
    CHECK(op.kind != OpKind::alloc);
    CHECK(op.kind != OpKind::free);
    CHECK(op.kind != OpKind::host_work);
    CHECK(op.kind != OpKind::next_batch);
    if (op.kind == OpKind::launch) CHECK(op.work == hw::HostWork::op_forward);
  }
}

TEST_CASE("no_sync: in all but the last micro-batch compute waits for no reduction") {
  StepSpec spec = test::fixed_step(2);
  spec.batch.grad_accum = 2;
  spec.policy.no_sync = true;
  const Program p = build_program(spec, 1);
  const Words all = test::words(p, p.steps[0], {OpKind::wait, OpKind::collective});
  CHECK(count_of(all, "compute waits tail of post_backward") == 1);
  CHECK(count_of(all, "post_backward waits tail of compute") == 3);
}

TEST_CASE("sizes and types of the collectives: Llama-2-7B on 32 ranks") {
  StepSpec spec = test::fixed_step(2);
  spec.precision.reduce = hw::Dtype::fp32;
  const Program p = build_program(spec, 1);
  std::int64_t gathered = 0, reduced = 0, gathered_root = 0;
  for (const CollectiveEntry& entry : p.collectives) {
    const bool gather = entry.shape.kind == hw::CollectiveKind::all_gather;
    if (entry.root_unit && gather) gathered_root = entry.shape.bytes;
    if (!entry.root_unit) (gather ? gathered : reduced) = entry.shape.bytes;
    CHECK(entry.shape.group.ranks() == 32);
  }
  CHECK(gathered == 2 * 202'383'360);
  CHECK(gathered_root == 2 * 262'148'096);
  CHECK(reduced == 4 * 202'383'360);
}

TEST_CASE("what is not supported is refused by name") {
  StepSpec spec = test::fixed_step(2);
  spec.policy.framework = Framework::zero3;
  CHECK_THROWS_AS(build_program(spec, 1), InputError);
  spec = test::fixed_step(2);
  spec.policy.framework = Framework::ddp;
  CHECK_THROWS_AS(build_program(spec, 1), InputError);
  spec = test::fixed_step(2);
  spec.model.kv_heads = 5;
  CHECK_THROWS_AS(build_program(spec, 1), InputError);
  spec = test::fixed_step(2);
  CHECK_THROWS_AS(build_program(spec, 0), InputError);
  spec.model.hidden = std::int64_t{1} << 60;
  CHECK_THROWS_AS(build_program(spec, 1), InputError);
}

}  // namespace
}  // namespace stepcast::program
