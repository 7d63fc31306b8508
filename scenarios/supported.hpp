// What the format knows and the simulator does not do yet: refused in one place, never ignored. Work that adds a feature removes its line in supported.cpp.
// Test: tests/unit/scenario_test.cpp.
#pragma once

#include "hw_models/strict_json.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::scenarios {

/// Throws InputError "not supported yet" on the first such key or value of a merged scenario.
void refuse_unsupported(const Json& scenario, const Reader::Origin& origin);

}  // namespace stepcast::scenarios
