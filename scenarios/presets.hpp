// Models by name, compiled in from data/models/*.json: their shape, where the figures come from, and the parameter count that the shape must give.
// Test: tests/unit/presets_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/spec.hpp"

namespace stepcast::scenarios {

struct Preset {
  std::string name, source;
  std::int64_t parameters = 0;
  program::ModelShape model;
};

std::vector<std::string> preset_names();
/// Throws std::out_of_range on a name that preset_names does not list, and InputError if a compiled-in file is wrong (a test reads them all).
Preset preset(const std::string& name);

}  // namespace stepcast::scenarios
