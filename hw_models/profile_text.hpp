// Writes a profile in the format of data/*.json, so that the reader gives the same constants back. docs/models.md, "Hardware profiles". Test: tests/model/profiles_test.cpp.
#pragma once

#include <string>

#include "hw_models/hardware.hpp"

namespace stepcast::hw {

/// Whole files, parts resolved; every number reads back to the same double.
std::string gpu_profile_text(const Profile& profile);
std::string node_profile_text(const Profile& profile);

}  // namespace stepcast::hw
