// Dimensions of quantities, and the one rounding of a cost to a time. docs/adr/0003-own-units.md.

#include "hw_models/units.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "hw_models/sim_time.hpp"

using namespace stepcast;

TEST_CASE("quantities multiply and divide with their dimensions") {
  const Seconds time = Bytes(4e9) / BytesPerSecond(2e9);
  CHECK(time.in(second) == 2.0);
  CHECK((BytesPerSecond(2e9) * time).in(gigabyte) == 4.0);
  CHECK(Seconds(6) / Seconds(3) == 2.0);
}

TEST_CASE("to_sim_time rounds to the nearest picosecond and refuses what is no duration") {
  CHECK(to_sim_time(Seconds(1e-6)).count() == 1'000'000);
  CHECK(to_sim_time(Seconds(1.6e-12)).count() == 2);
  CHECK_THROWS_AS(to_sim_time(Seconds(-1)), std::domain_error);
  CHECK_THROWS_AS(to_sim_time(Seconds(std::numeric_limits<double>::quiet_NaN())), std::domain_error);
  CHECK_THROWS_AS(to_sim_time(Seconds(1e30)), std::domain_error);
}
