// The manual page, in roff. docs/commands.md, "manual"; test: tests/unit/shell_test.cpp.
#pragma once

#include <string>

#include "cli/shell/command_tree.hpp"

namespace stepcast::cli {

/// stepcast(1): every command with its options and examples. `version` stands in the footer.
std::string manual_page(const CommandInfo& program, const std::string& version);

}  // namespace stepcast::cli
