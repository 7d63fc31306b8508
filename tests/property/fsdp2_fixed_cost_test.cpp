// FSDP2 and DDP in fixed-cost mode against independent evaluations, exact to the picosecond, over some thousands of pseudo-random settings.
#include <doctest/doctest.h>

#include "tests/support/fixed_cost_run.hpp"
#include "tests/support/fsdp2_oracle.hpp"
#include "tests/support/sanitized.hpp"

using namespace stepcast;
using test::Fsdp2Setting;
using test::OracleSetting;

namespace {

struct Draw {
  std::uint64_t state;
  std::int64_t below(std::int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(n));
  }
  int small(int n) { return static_cast<int>(below(n)); }
};

OracleSetting draw_costs(Draw& draw) {
  OracleSetting s;
  s.layers = 2 + draw.small(31);
  s.steps = 2 + draw.small(3);
  s.accumulation = 1 + draw.small(3);
  s.no_sync = draw.small(2) != 0;
  const std::int64_t scale = draw.small(2) != 0 ? 1000 : 100000;  // slow and fast hosts relative to the device
  s.embedding_forward = draw.below(scale);
  s.block_forward = draw.below(4 * scale);
  s.head_forward = draw.below(scale);
  s.head_backward = draw.below(2 * scale);
  s.block_backward = draw.below(8 * scale);
  s.embedding_backward = draw.below(scale);
  s.optimizer = draw.below(scale);
  s.gather_block = draw.below(5 * scale);
  s.gather_root = draw.below(6 * scale);
  s.scatter_block = draw.below(5 * scale);
  s.scatter_root = draw.below(6 * scale);
  s.host_kernel = draw.small(3) == 0 ? 0 : draw.below(3000);
  s.host_collective = draw.small(3) == 0 ? 0 : draw.below(5000);
  return s;
}

Fsdp2Setting draw_setting(std::uint64_t seed) {
  Draw draw{seed * 7919 + 3};
  for (int i = 0; i < 4; ++i) draw.below(2);
  Fsdp2Setting s;
  s.costs = draw_costs(draw);
  const int reshards[] = {0, 1, 1, 8};
  s.reshard = reshards[draw.small(4)];
  if (draw.small(3) == 0) s.forward_depth = 1 + draw.small(std::min(3, s.costs.layers));
  if (draw.small(3) == 0) s.backward_depth = 1 + draw.small(std::min(3, s.costs.layers));
  return s;
}

sim::Result run(const program::StepSpec& spec, const OracleSetting& costs, std::int32_t ranks = 1) {
  const auto program = program::build_program(spec, costs.steps);
  sim::Options options;
  options.ranks = ranks;
  options.memory_limit = false;
  options.launch_queue_depth = 1 << 30;
  sim::FixedCosts fixed = test::costs_of(costs);
  fixed.all_reduce_block = fixed.reduce_scatter_block;
  return sim::simulate(program, sim::price(program, fixed), options);
}

program::StepSpec spec_of(const Fsdp2Setting& setting) {
  program::StepSpec spec = test::spec_of(setting.costs);
  spec.policy = {};
  spec.policy.framework = program::Framework::fsdp2;
  spec.policy.no_sync = setting.costs.no_sync;
  spec.policy.reshard_after_forward = setting.reshard;
  spec.policy.forward_prefetch_depth = setting.forward_depth;
  spec.policy.backward_prefetch_depth = setting.backward_depth;
  return spec;
}

/// DDP: each unit one bucket; all-reduces in order beside the backward.
std::vector<std::int64_t> ddp_ends(const OracleSetting& c) {
  std::vector<std::int64_t> ends;
  std::int64_t host = 0, compute = 0, nccl = 0;
  const auto kernel = [&](std::int64_t duration) { host += c.host_kernel, compute = std::max(compute, host) + duration; };
  for (int step = 0; step < c.steps; ++step) {
    for (int m = 0; m < c.accumulation; ++m) {
      const bool sync = !c.no_sync || m + 1 == c.accumulation;
      const auto reduce = [&] {
        if (sync) host += c.host_collective, nccl = std::max({nccl, compute, host}) + c.scatter_block;
      };
      kernel(c.embedding_forward);
      for (int u = 0; u < c.layers; ++u) kernel(c.block_forward);
      kernel(c.head_forward);
      kernel(c.head_backward);
      for (int u = 0; u < c.layers; ++u) kernel(c.block_backward), reduce();
      kernel(c.embedding_backward);
      reduce();
      if (sync) compute = std::max(compute, nccl);
    }
    kernel(c.optimizer);
    ends.push_back(compute);
  }
  return ends;
}

void compare(const sim::Result& result, const std::vector<std::int64_t>& expected) {
  REQUIRE(result.outcome == sim::Outcome::ok);
  REQUIRE(result.step_end.size() == expected.size());
  for (std::size_t step = 0; step < expected.size(); ++step) {
    CAPTURE(step);
    REQUIRE(result.step_end[step].count() == expected[step] * 1000);
  }
}

}  // namespace

TEST_CASE("FSDP2 in fixed-cost mode equals the independent evaluation on 4,000 settings") {
  for (std::uint64_t seed = 0; seed < test::draws(4000); ++seed) {
    CAPTURE(seed);
    const Fsdp2Setting setting = draw_setting(seed);
    compare(run(spec_of(setting), setting.costs), test::Fsdp2Oracle(setting).run());
  }
}

TEST_CASE("DDP in fixed-cost mode equals the independent evaluation on 1,000 settings") {
  for (std::uint64_t seed = 0; seed < test::draws(1000); ++seed) {
    CAPTURE(seed);
    Draw draw{seed * 104729 + 5};
    const OracleSetting costs = draw_costs(draw);
    program::StepSpec spec = test::spec_of(costs);
    spec.policy = {};
    spec.policy.framework = program::Framework::ddp;
    spec.policy.no_sync = costs.no_sync;
    spec.precision.reduce = spec.precision.master;
    compare(run(spec, costs), ddp_ends(costs));
  }
}

TEST_CASE("FSDP2: explicit ranks agree with the folded one, with a part of the ranks as a communicator of its own") {
  for (const int reshard : {1, 8}) {
    Fsdp2Setting setting = draw_setting(11);
    setting.reshard = reshard;
    CHECK(run(spec_of(setting), setting.costs, 32).step_end == run(spec_of(setting), setting.costs).step_end);
  }
}

TEST_CASE("a block whose all-gather and reduce-scatter exceed its backward is bound by them: the stall is on compute") {
  Fsdp2Setting s;
  s.costs.layers = 16;
  s.costs.block_forward = 30, s.costs.block_backward = 60, s.costs.gather_block = 50, s.costs.scatter_block = 50;
  const auto ends = test::Fsdp2Oracle(s).run();
  const std::int64_t step = ends[2] - ends[1];
  CHECK(step >= 16 * 50 + 16 * 100);                 // forward bound by gathers, backward by both
  CHECK(step <= 16 * 50 + 16 * 100 + 50 + 60 + 30);  // and only its ends stand out
  compare(run(spec_of(s), s.costs), ends);
}
