// Reads the model section: a preset or a style, then explicit fields over it, then what follows from them. Test: tests/unit/scenario_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "hw_models/strict_json.hpp"
#include "program/spec.hpp"

namespace stepcast::scenarios {

/// Explicit fields over `start` (absent: all sizes must be there). kv_heads defaults to heads, head_dim to hidden / heads. Finishes the reader.
program::ModelShape read_shape(Reader reader, std::optional<program::ModelShape> start);

struct Model {
  std::string name;
  program::ModelShape shape;
};
/// The whole section. With fixed costs only `layers` is needed: the other sizes then do not matter.
Model read_model(Reader reader, bool fixed_costs);

}  // namespace stepcast::scenarios
