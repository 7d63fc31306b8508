// See training.hpp.
#include "real_backend/training.hpp"

#include <cmath>
#include <numbers>

namespace stepcast::real {
namespace {

/// SplitMix64 (Steele, Lea and Flood, 2014) as a hash.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

enum class Kind : std::uint8_t { matrix, norm, bias };

Kind kind_of(std::string_view name) {
  if (name.ends_with(".bias")) return Kind::bias;
  return name.find("norm") != std::string_view::npos ? Kind::norm : Kind::matrix;
}

/// Of an initialisation with normally distributed matrices, as GPT-2's (Radford et al., 2019).
constexpr double kDeviation = 0.02;

}  // namespace

std::int64_t Training::token(std::int64_t step, std::int64_t sequence, std::int64_t position) const {
  if (source == Source::closed_form) return (7 * sequence + 3 * position * position + 5 * step + 1) % vocab;
  const std::uint64_t key = mix(mix(mix(seed + 1) + static_cast<std::uint64_t>(step)) + static_cast<std::uint64_t>(sequence));
  return static_cast<std::int64_t>(mix(key + static_cast<std::uint64_t>(position)) % static_cast<std::uint64_t>(vocab));
}

double Training::parameter(std::string_view name, std::int64_t number) const {
  const Kind kind = kind_of(name);
  if (source == Source::closed_form) {
    const double wave = std::sin(0.7 * static_cast<double>(number) + 0.3);
    return kind == Kind::matrix ? 0.08 * wave : kind == Kind::norm ? 1 + 0.05 * wave : 0.02 * wave;
  }
  if (kind != Kind::matrix) return kind == Kind::norm ? 1 : 0;
  const std::uint64_t key = mix(mix(seed + 2) + static_cast<std::uint64_t>(number));
  return kDeviation * std::sqrt(-2 * std::log(uniform(key))) * std::cos(2 * std::numbers::pi * uniform(mix(key)));
}

}  // namespace stepcast::real
