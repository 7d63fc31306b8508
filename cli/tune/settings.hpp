// A scenario's settings as one pastes them into a framework's configuration. What a framework can't express is said in a comment. docs/tune.md, "Settings"; test: tests/unit/paste_test.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"

namespace stepcast::cli {

/// (name, text): fsdp1, fsdp2 (Python), accelerate (YAML), torchtitan (TOML), deepspeed (JSON), llm_foundry (YAML), environment (shell). For FSDP1 and FSDP2 scenarios.
std::vector<std::pair<std::string, std::string>> settings_to_paste(const scenarios::Scenario& scenario);

}  // namespace stepcast::cli
