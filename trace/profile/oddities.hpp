// What can be odd about a file, by name, and how much it matters. Document: docs/diagnose.md, "Oddities". Test: tests/unit/profile_oddities_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stepcast::trace::profile {

/// info: a form that does no harm; warning: used, but numbers that rest on it may be off; error: part of the file is not used.
enum class Severity : std::uint8_t { info, warning, error };
std::string_view name(Severity severity);

struct Oddity {
  std::string_view name;
  Severity severity;
};
/// All that Profile::oddities can hold.
std::span<const Oddity> oddities();
Severity severity_of(std::string_view oddity);

}  // namespace stepcast::trace::profile
