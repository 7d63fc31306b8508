// Completion scripts for bash, zsh and fish. docs/commands.md, "completion"; test: tests/unit/shell_test.cpp and tests/golden/shell_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/shell/command_tree.hpp"

namespace stepcast::cli {

/// `scenarios`: names that stand where a SCENARIO can. After an option with a value, and at any other place, files are offered.
std::string bash_completion(const CommandInfo& program, const std::vector<std::string>& scenarios);
std::string zsh_completion(const CommandInfo& program, const std::vector<std::string>& scenarios);
std::string fish_completion(const CommandInfo& program, const std::vector<std::string>& scenarios);

}  // namespace stepcast::cli
