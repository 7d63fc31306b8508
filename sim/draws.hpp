// Random draws keyed by what they are for: a hash of (seed, purpose, owner, number). The order in which they are drawn can't matter, and the arithmetic is that of
// integers and of exactly rounded operations, so that every machine draws the same. docs/models.md, "Random draws". Test: tests/unit/draws_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "hw_models/sim_time.hpp"

namespace stepcast::sim {

enum class Purpose : std::uint8_t { kernel, host, collective, rank_speed, pause, batch };

/// SplitMix64's finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
constexpr std::uint64_t mix(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

/// The draws of one owner (a rank, a group) for one purpose.
class Draws {
 public:
  constexpr Draws() = default;
  constexpr Draws(std::uint64_t seed, Purpose purpose, std::uint64_t owner)
      : key_(mix(mix(mix(seed + kStep) + static_cast<std::uint64_t>(purpose) * kStep) + owner * kStep)) {}
  /// 64 random bits.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t number) const { return mix(key_ + (number + 1) * kStep); }
  /// Uniform in [0, 2 x mean).
  [[nodiscard]] SimTime uniform(std::uint64_t number, SimTime mean) const;

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio
  std::uint64_t key_ = 0;
};

/// A factor in units of 2^-20.
using Factor = std::int64_t;
inline constexpr Factor kOne = Factor{1} << 20;
Factor factor_of(double ratio);

/// time x factor, rounded to the nearest picosecond; exactly `time` where the factor is one.
inline SimTime scaled(SimTime time, Factor factor) {
  __extension__ using Wide = __int128;
  return SimTime(static_cast<std::int64_t>((static_cast<Wide>(time.count()) * factor + kOne / 2) >> 20));
}

/// Log-normal factors of mean 1: exp(sigma z), z at the midpoints of 4096 equally likely parts of the standard normal distribution (|z| up to 3.67), divided by their mean.
class Spread {
 public:
  Spread() = default;  // every factor is one
  explicit Spread(double sigma);
  [[nodiscard]] bool on() const { return !factors_.empty(); }
  [[nodiscard]] Factor operator()(std::uint64_t draw) const { return factors_.empty() ? kOne : factors_[draw >> 52]; }

 private:
  std::vector<Factor> factors_;
};

/// exp(x) and the standard normal distribution by series of additions, products and quotients alone, which IEEE 754 rounds alike everywhere.
double exponential(double x);
/// Phi(z) = 1/2 + phi(z) (z + z^3/3 + z^5/(3 5) + ...); Marsaglia: Evaluating the normal distribution, 2004. Valid for |z| <= 5.
double normal_distribution(double z);

}  // namespace stepcast::sim
