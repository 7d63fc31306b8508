// How `stepcast serve` registers. See cli/serve.cpp.
#pragma once

#include "cli/command.hpp"

namespace stepcast::cli {

void add_serve(CLI::App& app, Action& action);

}  // namespace stepcast::cli
