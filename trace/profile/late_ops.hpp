// Which operators launched too late: the outermost one around the launch that ended each gap of a cause. Private to trace/profile.
// Document: docs/diagnose.md, "Findings". Test: tests/unit/profile_findings_test.cpp.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "trace/profile/gaps.hpp"

namespace stepcast::trace::profile {

/// Index of the operator's name, and the length of the gaps that its launches ended; the largest first. Gaps ended by a launch outside of all operators are left out.
std::vector<std::pair<std::uint32_t, Time>> late_ops(const Profile& profile, const Gaps& gaps, Cause cause);

}  // namespace stepcast::trace::profile
