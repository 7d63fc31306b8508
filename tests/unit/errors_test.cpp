// Statistics of errors against values worked out by hand. calibration/errors.hpp.
#include "calibration/errors.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

using namespace stepcast::calibration;

TEST_CASE("median, mean, 90th percentile, maximum and bias of signed errors") {
  const std::vector<double> errors = {-0.4, 0.1, 0.2, -0.1, 0.3};
  const ErrorSummary s = summarize(errors);
  CHECK(s.count == 5);
  CHECK(s.median == doctest::Approx(0.2));  // of 0.1 0.1 0.2 0.3 0.4
  CHECK(s.mean == doctest::Approx(0.22));
  CHECK(s.p90 == doctest::Approx(0.36));  // rank 3.6: 0.3 + 0.6 x 0.1
  CHECK(s.max == doctest::Approx(0.4));
  CHECK(s.bias == doctest::Approx(0.1));  // of -0.4 -0.1 0.1 0.2 0.3
  CHECK(summarize({}).count == 0);
}

TEST_CASE("rank correlation: order alone counts, ties share their rank") {
  const std::vector<double> a = {1, 2, 3, 4}, cubes = {1, 8, 27, 64}, down = {4, 3, 2, 1}, tied = {1, 2, 2, 3};
  CHECK(*rank_correlation(a, cubes) == doctest::Approx(1));
  CHECK(*rank_correlation(a, down) == doctest::Approx(-1));
  CHECK(*rank_correlation(a, tied) == doctest::Approx(0.9486833));  // ranks 0 1.5 1.5 3: 4.5 / sqrt(5 x 4.5)
  CHECK(!rank_correlation(std::vector<double>{1, 2}, std::vector<double>{1, 2}));
  CHECK(!rank_correlation(a, std::vector<double>{5, 5, 5, 5}));
}
