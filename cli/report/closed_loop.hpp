// The closed loop in text, JSON and CSV. Fields: docs/validate.md, "Scenarios". Test: tests/unit/closed_loop_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/validate/closed_loop.hpp"

namespace stepcast::cli {

std::string to_text(const Loop& loop);
nlohmann::ordered_json to_json(const Loop& loop);
std::string to_csv(const Loop& loop);

}  // namespace stepcast::cli
