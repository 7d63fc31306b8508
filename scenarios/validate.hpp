// Rules between the fields of a scenario. Test: tests/unit/scenario_test.cpp.
#pragma once

#include "hw_models/strict_json.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::scenarios {

/// Throws InputError at the field that breaks a rule: sizes that do not divide, sums that do not add up, products past the limits of limits.hpp, unknown hardware.
void validate(const Scenario& scenario, const Reader::Origin& origin);

}  // namespace stepcast::scenarios
