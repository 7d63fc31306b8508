// The allocator section alone, for commands that have no scenario (replay): --set values over settings from elsewhere, read as strictly as a scenario.
// For users: docs/scenario.md, "allocator". Test: tests/unit/allocator_sets_test.cpp.
#pragma once

#include "scenarios/scenario.hpp"

namespace stepcast::scenarios {

/// `base` with "/allocator/key=value" texts applied in order. Throws InputError for a key or value that a scenario's allocator section would refuse, and for any
/// other section.
Allocator allocator_with(const Allocator& base, Sets sets);

}  // namespace stepcast::scenarios
