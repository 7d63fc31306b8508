// Builds with a sanitizer run ten times as long: property tests draw a tenth of their settings there, where memory errors show in the first hundreds, and tests of figures leave some out.
#pragma once

#include <cstdint>

namespace stepcast::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

constexpr std::uint64_t draws(std::uint64_t count) { return kSanitized ? count / 10 : count; }

}  // namespace stepcast::test
