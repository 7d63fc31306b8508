// What the parts of the diagnosis in text share.
#pragma once

#include <cstddef>
#include <string>

#include "cli/report/table.hpp"
#include "trace/profile/profile.hpp"

namespace stepcast::cli {

inline constexpr std::size_t kNameWidth = 70;  // characters of a kernel's name that are shown

inline std::string time_of(trace::profile::Time time) { return time_text(static_cast<double>(time.count()) * 1e-9); }

}  // namespace stepcast::cli
