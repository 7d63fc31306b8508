// Fixed-cost mode against an independent evaluation, exact to the picosecond, over some thousands of pseudo-random settings.
#include <doctest/doctest.h>

#include "tests/support/fixed_cost_oracle.hpp"
#include "tests/support/fixed_cost_run.hpp"
#include "tests/support/sanitized.hpp"

using namespace stepcast;
using test::OracleSetting;

namespace {

/// A small counter-based source of settings.
struct Draw {
  std::uint64_t state;
  std::int64_t below(std::int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(n));
  }
};

OracleSetting draw_setting(std::uint64_t seed) {
  Draw draw{seed * 7919 + 1};
  for (int i = 0; i < 4; ++i) draw.below(2);
  OracleSetting s;
  s.layers = static_cast<int>(2 + draw.below(31));
  s.steps = static_cast<int>(2 + draw.below(3));
  s.accumulation = static_cast<int>(1 + draw.below(3));
  s.shard_grad_op = draw.below(2) != 0;
  s.forward_prefetch = draw.below(2) != 0;
  s.limiter = draw.below(2) != 0;
  s.no_sync = draw.below(2) != 0;
  s.prefetch = static_cast<int>(draw.below(3));
  const std::int64_t scale = draw.below(2) != 0 ? 1000 : 100000;  // slow and fast hosts relative to the device
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
  s.host_kernel = draw.below(3) == 0 ? 0 : draw.below(3000);
  s.host_collective = draw.below(3) == 0 ? 0 : draw.below(5000);
  s.all_reduce = draw.below(6 * scale);
  return s;
}

}  // namespace

namespace {

void expect_equal(const OracleSetting& setting) {
  const auto result = test::run_fixed(setting);
  const auto expected = test::Oracle(setting).run();
  REQUIRE(result.outcome == sim::Outcome::ok);
  REQUIRE(result.step_end.size() == expected.size());
  for (std::size_t step = 0; step < expected.size(); ++step) {
    CAPTURE(step);
    REQUIRE(result.step_end[step].count() == expected[step] * 1000);
  }
}

}  // namespace

TEST_CASE("fixed-cost mode equals the independent evaluation on 3,000 settings") {
  for (std::uint64_t seed = 0; seed < test::draws(3000); ++seed) {
    CAPTURE(seed);
    expect_equal(draw_setting(seed));
  }
}

TEST_CASE("and on 1,000 settings each of hybrid sharding and of no sharding") {
  for (std::uint64_t seed = 0; seed < test::draws(1000); ++seed) {
    CAPTURE(seed);
    OracleSetting setting = draw_setting(seed);
    setting.hybrid = true;
    expect_equal(setting);
    setting.hybrid = false;
    setting.no_shard = true;
    expect_equal(setting);
  }
}
