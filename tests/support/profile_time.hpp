// Times of a profile, in microseconds as profiles have them.
#pragma once

#include "trace/profile/profile.hpp"

namespace stepcast::test {

constexpr trace::profile::Time us(std::int64_t value) { return std::chrono::microseconds(value); }

}  // namespace stepcast::test
