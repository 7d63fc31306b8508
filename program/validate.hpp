// Refuses what no program can be built for: sizes that contradict each other, settings that are not supported yet. Test: tests/unit/build_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "program/spec.hpp"

namespace stepcast::program {

/// Throws InputError naming the scenario key (JSON pointer) of the first fault.
void validate(const StepSpec& spec, int steps);

/// A rule between settings, each of which is good by itself; `key` is a JSON pointer.
struct BrokenRule {
  const char* key;
  std::string what, hint;
};
/// The first that is broken. Defined in rules.cpp.
std::optional<BrokenRule> broken_rule(const StepSpec& spec);
/// Its part about the model. Defined in model_rules.cpp.
std::optional<BrokenRule> broken_model_rule(const StepSpec& spec);
/// Its part about native kernels. Defined in native_rules.cpp.
std::optional<BrokenRule> broken_native_rule(const StepSpec& spec);
/// Its part about settings that belong to another framework. Defined in framework_rules.cpp.
std::optional<BrokenRule> broken_framework_rule(const StepSpec& spec);

}  // namespace stepcast::program
