// Draws: their distribution, and that they are the same numbers everywhere. Definitions: sim/draws.hpp.
#include "sim/draws.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace stepcast;
using namespace stepcast::sim;

TEST_CASE("series for exp and the normal distribution agree with the library") {
  for (double x = -8; x <= 8; x += 0.37) CHECK(exponential(x) == doctest::Approx(std::exp(x)).epsilon(1e-11));
  for (double z = -4; z <= 4; z += 0.31) CHECK(normal_distribution(z) == doctest::Approx(0.5 * std::erfc(-z / std::sqrt(2.0))).epsilon(1e-9));
}

TEST_CASE("a spread is log-normal with mean 1") {
  const Spread spread(0.2);
  double sum = 0, logs = 0, squares = 0;
  for (std::uint64_t part = 0; part < 4096; ++part) {
    const double factor = static_cast<double>(spread(part << 52)) / static_cast<double>(kOne);
    sum += factor;
    logs += std::log(factor);
    squares += std::log(factor) * std::log(factor);
  }
  CHECK(sum / 4096 == doctest::Approx(1).epsilon(1e-6));
  CHECK(logs / 4096 == doctest::Approx(-0.02).epsilon(0.01));                                // median exp(-sigma^2 / 2)
  CHECK(squares / 4096 - logs * logs / 4096 / 4096 == doctest::Approx(0.04).epsilon(0.01));  // variance of the logarithm
  CHECK(spread(0) < spread(~std::uint64_t{0}));
}

TEST_CASE("no spread leaves every time as it is") {
  const Spread none;
  CHECK(!none.on());
  CHECK(none(12345) == kOne);
  CHECK(scaled(SimTime(987654321987), kOne) == SimTime(987654321987));
  CHECK(scaled(SimTime(1000), factor_of(1.5)) == SimTime(1500));
}

TEST_CASE("draws are uniform, and differ by seed, purpose, owner and number") {
  const Draws draws(7, Purpose::kernel, 3);
  double sum = 0;
  for (std::uint64_t n = 0; n < 10000; ++n) sum += static_cast<double>(draws.uniform(n, SimTime(1'000'000)).count());
  CHECK(sum / 10000 == doctest::Approx(1e6).epsilon(0.02));
  CHECK(draws(1) == Draws(7, Purpose::kernel, 3)(1));
  CHECK(draws(1) != draws(2));
  CHECK(draws(1) != Draws(8, Purpose::kernel, 3)(1));
  CHECK(draws(1) != Draws(7, Purpose::host, 3)(1));
  CHECK(draws(1) != Draws(7, Purpose::kernel, 4)(1));
}

TEST_CASE("the same numbers on every machine") {
  CHECK(Draws(0, Purpose::kernel, 0)(0) == 3235846975224723415u);
  const Spread spread(0.1);
  CHECK(spread(0) == 722962);
  CHECK(spread(std::uint64_t{2048} << 52) == 1043380);
  CHECK(spread(~std::uint64_t{0}) == 1505715);
}
