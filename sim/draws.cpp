// See draws.hpp.
#include "sim/draws.hpp"

#include <cmath>

namespace stepcast::sim {

namespace {

constexpr double kInverseRootTwoPi = 0.39894228040143267794;
constexpr std::size_t kParts = 4096;

double normal_density(double z) { return kInverseRootTwoPi * exponential(-z * z / 2); }

/// Upper half of the quantiles at (i + 1/2) / kParts, from the middle outwards. Newton's method, from one quantile to the next.
std::vector<double> upper_quantiles() {
  std::vector<double> quantiles;
  double z = 0;
  for (std::size_t i = 0; i < kParts / 2; ++i) {
    const double p = 0.5 + (static_cast<double>(i) + 0.5) / kParts;
    for (int step = 0; step < 4; ++step) z += (p - normal_distribution(z)) / normal_density(z);
    quantiles.push_back(z);
  }
  return quantiles;
}

}  // namespace

SimTime Draws::uniform(std::uint64_t number, SimTime mean) const {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>((*this)(number)) * (2 * static_cast<std::uint64_t>(mean.count()));
  return SimTime(static_cast<std::int64_t>(product >> 64));
}

double exponential(double x) {
  constexpr int kHalvings = 10;
  const double small = x / (1 << kHalvings);
  double sum = 1, term = 1;
  for (int n = 1; n <= 10; ++n) sum += term *= small / n;
  for (int i = 0; i < kHalvings; ++i) sum *= sum;
  return sum;
}

double normal_distribution(double z) {
  double sum = z, term = z;
  for (int n = 3; std::abs(term) > 1e-18; n += 2) sum += term *= z * z / n;
  return 0.5 + normal_density(z) * sum;
}

Factor factor_of(double ratio) { return std::llround(ratio * static_cast<double>(kOne)); }

Spread::Spread(double sigma) {
  if (sigma == 0) return;
  const std::vector<double> upper = upper_quantiles();
  std::vector<double> factors(kParts);
  double sum = 0;
  for (std::size_t i = 0; i < kParts; ++i) {
    const double z = i < kParts / 2 ? -upper[kParts / 2 - 1 - i] : upper[i - kParts / 2];
    sum += factors[i] = exponential(sigma * z);
  }
  factors_.reserve(kParts);
  for (const double factor : factors) factors_.push_back(factor_of(factor * kParts / sum));
}

}  // namespace stepcast::sim
