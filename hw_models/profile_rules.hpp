// Which constants each kind of profile has, what they measure and the range in which a value is believable. docs/models.md, "Hardware profiles".
// Test: tests/model/profiles_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "hw_models/text_units.hpp"

namespace stepcast::hw {

inline constexpr const char* kProfileSchema = "stepcast.hardware/1";

/// One constant of a profile. `dimension` is absent for ratios and counts, which are bare numbers. Limits in SI units, inclusive.
struct ConstantRule {
  std::string_view name;
  std::optional<Dimension> dimension;
  double min = 0, max = 0;
  bool required = true;
};

std::span<const ConstantRule> gpu_rules();
std::span<const ConstantRule> node_rules();

/// Rule of that name, or null.
const ConstantRule* find_rule(std::span<const ConstantRule> rules, std::string_view name);

}  // namespace stepcast::hw
