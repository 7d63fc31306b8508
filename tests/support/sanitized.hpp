// Property tests draw a tenth of their settings in builds with a sanitizer, which run ten times as long: memory errors show in the first hundreds.
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
