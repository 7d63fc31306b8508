// The units that parameters are gathered in, by the sizes of the gathers, against those of the inferred model. Private to cli/diagnose.
// Test: tests/unit/inference_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program/spec.hpp"
#include "trace/profile/workload.hpp"

namespace stepcast::cli {

/// What a forward gathers: sizes in elements, and how often each.
struct GatheredUnit {
  double elements = 0, count = 0;
};
std::vector<GatheredUnit> gathered_units(const trace::profile::Workload& work, double forwards);

/// A way to wrap a model that explains the sizes.
struct UnitsSeen {
  program::Wrap wrap = program::Wrap::blocks;
  std::int64_t blocks_per_unit = 1;
  bool tied = false;
  bool ends_known = false;  // a unit with the embedding or the head was recognised, so `tied` is sure
};
std::optional<UnitsSeen> units_seen(const std::vector<GatheredUnit>& gathered, program::ModelShape model);

}  // namespace stepcast::cli
