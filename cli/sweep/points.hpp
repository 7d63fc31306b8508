// The outcome of a point of a sweep: the object that is kept of it, and the figures that tables show. docs/sweep.md; test: tests/unit/sweep_test.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "program/program.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

/// {"report": {...}}, and for a point that runs out of memory "missing_bytes": what the device would have to have more.
nlohmann::ordered_json point_of(const scenarios::Scenario& scenario, const program::Program& program);
/// The same for a point that the rules of a scenario refuse.
nlohmann::ordered_json refused_point(const std::string& why);

/// Zero where the outcome has no such figure.
struct PointRow {
  std::string outcome, bound, refusal;
  double step_time_s = 0, tokens_per_s_per_gpu = 0, mfu = 0, hfu = 0, exposed_comm_s = 0;
  std::int64_t peak_reserved_bytes = 0, headroom_bytes = 0, missing_bytes = 0;
  bool has_mfu = false, has_headroom = false;
};

/// Throws InputError on an object that point_of can't have made; `place` names it.
PointRow row_of(const nlohmann::ordered_json& point, const std::string& place);

}  // namespace stepcast::cli
