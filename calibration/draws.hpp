// Random numbers by counter: each draw is a function of seed, purpose and index alone, so that the order of work can't change it. Test: tests/unit/calibrate_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast::calibration {

/// Spreads the bits of a counter (the finaliser of SplitMix64: Steele, Lea and Flood, 2014).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

constexpr std::uint64_t hashed(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

/// In [0, 1).
constexpr double uniform(std::uint64_t seed, std::string_view purpose, std::uint64_t index) {
  return static_cast<double>(mixed(mixed(seed ^ hashed(purpose)) ^ index) >> 11U) * 0x1p-53;
}

/// About standard normal: twelve uniform draws less their mean. No libm, so the same bits everywhere.
constexpr double normal(std::uint64_t seed, std::string_view purpose, std::uint64_t index) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) sum += uniform(seed, purpose, 12 * index + i);
  return sum;
}

}  // namespace stepcast::calibration
