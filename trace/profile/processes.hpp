// A file in which several processes were recorded, one profile for each: what a thread of one does says nothing about the devices of another.
// Document: docs/diagnose.md, "Several processes in one file". Test: tests/unit/profile_processes_test.cpp.
#pragma once

#include <vector>

#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

/// The profile itself where one process launched to all devices. Else one for each that launched to some, in the order of the devices: its host events, its devices and their
/// memory, and as its rank the file's and its place. What belongs to none of them is the first's, as are the oddities of the file.
std::vector<Profile> by_process(Profile profile);

}  // namespace stepcast::trace::profile
