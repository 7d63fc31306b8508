// Tokens and first values: the closed formulas by hand, and what is drawn.
#include <doctest/doctest.h>

#include <cmath>

#include "real_backend/training.hpp"

namespace stepcast::real {
namespace {

TEST_CASE("closed formulas") {
  const Training t{.source = Source::closed_form, .vocab = 64};
  CHECK(t.token(0, 0, 0) == 1);
  CHECK(t.token(2, 3, 5) == (21 + 75 + 10 + 1) % 64);
  CHECK(t.parameter("b0.q.weight", 10) == doctest::Approx(0.08 * std::sin(7.3)).epsilon(1e-15));
  CHECK(t.parameter("b0.norm1.weight", 10) == doctest::Approx(1 + 0.05 * std::sin(7.3)).epsilon(1e-15));
  CHECK(t.parameter("norm.bias", 10) == doctest::Approx(0.02 * std::sin(7.3)).epsilon(1e-15));
  CHECK(t.parameter("b0.qkv.bias", 10) == doctest::Approx(0.02 * std::sin(7.3)).epsilon(1e-15));
}

TEST_CASE("the ranks of a micro-batch share the global batch without gaps") {
  const Training t{.micro_batch = 2, .ranks = 3};
  CHECK(t.first_sequence(0, 0) == 0);
  CHECK(t.first_sequence(0, 2) == 4);
  CHECK(t.first_sequence(1, 0) == 6);
}

TEST_CASE("drawn: matrices are normal with deviation 0.02, tokens uniform, both from the seed") {
  const Training t{.seed = 7, .vocab = 10}, other{.seed = 8, .vocab = 10};
  double sum = 0, squares = 0;
  int counts[10] = {};
  for (int i = 0; i < 10000; ++i) {
    const double w = t.parameter("head.weight", i);
    sum += w, squares += w * w;
    ++counts[t.token(0, i / 100, i % 100)];
  }
  CHECK(std::abs(sum / 10000) < 0.001);
  CHECK(std::sqrt(squares / 10000) == doctest::Approx(0.02).epsilon(0.03));
  for (const int count : counts) CHECK(count == doctest::Approx(1000).epsilon(0.15));
  CHECK(t.parameter("b0.norm1.weight", 3) == 1);
  CHECK(t.parameter("b0.qkv.bias", 3) == 0);
  CHECK(t.parameter("head.weight", 3) != other.parameter("head.weight", 3));
}

}  // namespace
}  // namespace stepcast::real
