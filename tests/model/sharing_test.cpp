// The small formulas of max-min sharing, by hand. docs/execution.md, "Sharing".

#include "sim/sharing.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace stepcast::sim;

TEST_CASE("max-min sharing, one resource: the small demand is met, the large one takes the rest") {
  // demands 0.3 and 1.0 on the DRAM: x1 = 1 uses 0.3; x2 = 0.7
  std::vector<Flow> flows(2);
  flows[0].demand[0] = 0.3;
  flows[1].demand[0] = 1.0;
  share(flows);
  // all speeds rise together: 1.3 x = 1 at x = 0.769; both stop there, since both use the full resource
  CHECK(flows[0].speed == doctest::Approx(1 / 1.3));
  CHECK(flows[1].speed == doctest::Approx(1 / 1.3));
}

TEST_CASE("max-min sharing: a flow below its fair speed leaves room for the others") {
  // limits 0.5 and 1, demands 1 and 1: x1 = 0.5 stops at its limit, x2 = 0.5 fills the resource
  // limits 0.2 and 1: x1 = 0.2, x2 = 0.8
  std::vector<Flow> flows(2);
  flows[0].demand[0] = flows[1].demand[0] = 1;
  flows[0].limit = 0.2;
  share(flows);
  CHECK(flows[0].speed == doctest::Approx(0.2));
  CHECK(flows[1].speed == doctest::Approx(0.8));
}

TEST_CASE("max-min sharing: flows on different resources do not disturb each other") {
  std::vector<Flow> flows(3);
  flows[0].demand[1] = flows[1].demand[1] = 1;
  flows[2].demand[2] = 1;
  share(flows);
  CHECK(flows[0].speed == doctest::Approx(0.5));
  CHECK(flows[1].speed == doctest::Approx(0.5));
  CHECK(flows[2].speed == doctest::Approx(1));
}

TEST_CASE("a flow without demand runs at its limit") {
  std::vector<Flow> flows(1);
  flows[0].limit = 0.8;
  share(flows);
  CHECK(flows[0].speed == 0.8);
}
