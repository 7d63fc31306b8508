// Clipping and AdamW: traffic per local parameter, launches, the all-reduce of the norm.
#include <doctest/doctest.h>

#include "program/build.hpp"
#include "program/model.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

struct Pass {
  int launches = 0, further = 0, all_reduces = 0;
  double bytes = 0;
};

/// The optimizer range of the second step.
Pass optimizer(const StepSpec& spec) {
  const Program p = build_program(spec, 2);
  Pass pass;
  bool inside = false;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind == OpKind::mark && p.marks[op.id].kind == MarkKind::optimizer) inside = p.marks[op.id].begin;
    if (!inside) continue;
    if (op.kind == OpKind::launch) ++pass.launches, pass.bytes += hw::dram_bytes(p.kernels[op.id].shape).si();
    if (op.kind == OpKind::host_work) pass.further += static_cast<int>(op.count);
    if (op.kind == OpKind::collective) ++pass.all_reduces;
  }
  return pass;
}

StepSpec spec_of(OptimizerImpl implementation, bool clip = false) {
  StepSpec spec = test::reference_step();
  spec.optimizer = {implementation, clip};
  return spec;
}

const double kLocal = static_cast<double>(parameters(test::llama2_7b())) / 32;

TEST_CASE("fused: 28 bytes per local fp32 parameter") {
  const Pass pass = optimizer(spec_of(OptimizerImpl::fused));
  CHECK(pass.bytes == 28 * kLocal);
  // 21.0 M elements fit a launch (320 chunks of 65,536): three block shards of 6.32 M, 32 blocks in 11 groups, the last with the root's 8.19 M: 2 blocks and the root.
  CHECK(pass.launches == 11);
  CHECK(pass.all_reduces == 0);
}

TEST_CASE("foreach: 20 element accesses, one at a time: the same") {
  CHECK(optimizer(spec_of(OptimizerImpl::foreach)).bytes == 80 * kLocal);
  CHECK(optimizer(spec_of(OptimizerImpl::foreach)).launches == 8 * 11);
  CHECK(optimizer(spec_of(OptimizerImpl::for_loop)).bytes == 80 * kLocal);
  CHECK(optimizer(spec_of(OptimizerImpl::for_loop)).launches == 8 * 33);
}

TEST_CASE("use_orig_params: each parameter's slice is a tensor of its own") {
  StepSpec spec = spec_of(OptimizerImpl::for_loop);
  spec.policy.use_orig_params = true;
  CHECK(optimizer(spec).launches == 8 * (32 * 9 + 3));
}

TEST_CASE("a shard larger than one launch") {
  StepSpec spec = spec_of(OptimizerImpl::fused);
  spec.model.layers = 1;
  spec.world = {1, 1};
  // One rank: 202.4 M and 262.1 M elements, 20.97 M a launch: 10 and 13 launches.
  const Pass pass = optimizer(spec);
  CHECK(pass.launches == 2);
  CHECK(pass.further == 9 + 12);
}

TEST_CASE("clipping: a norm and a multiplication per gradient, one all-reduce of one number") {
  const Pass without = optimizer(spec_of(OptimizerImpl::fused)), with = optimizer(spec_of(OptimizerImpl::fused, true));
  CHECK(with.launches - without.launches == 33 + 3 + 4 + 33);
  CHECK(with.all_reduces == 1);
  CHECK(with.bytes - without.bytes == doctest::Approx(12 * kLocal).epsilon(1e-6));  // read; read and write
  StepSpec alone = spec_of(OptimizerImpl::fused, true);
  alone.world = {1, 1};
  CHECK(optimizer(alone).all_reduces == 0);
}

TEST_CASE("the host waits for the norm only where it reads it") {
  const auto waits = [](bool reads) {
    StepSpec spec = spec_of(OptimizerImpl::fused, true);
    spec.optimizer.clip_host_sync = reads;
    const Program p = build_program(spec, 2);
    return test::count_of(test::words(p, p.steps[1], {OpKind::host_wait}), "host waits norm on the host");
  };
  CHECK(waits(false) == 0);
  CHECK(waits(true) == 1);
}

TEST_CASE("the norm's all-reduce runs in the compute stream's order, among the shards") {
  const Program p = build_program(spec_of(OptimizerImpl::fused, true), 1);
  for (const Op& op : p.slice(p.steps[0])) {
    if (op.kind != OpKind::collective || p.collectives[op.id].shape.kind != hw::CollectiveKind::all_reduce) continue;
    CHECK(op.stream == Stream::compute);
    CHECK(p.collectives[op.id].communicator == Communicator::shard);
    CHECK(p.collectives[op.id].shape.bytes == 4);
  }
}

}  // namespace
}  // namespace stepcast::program
