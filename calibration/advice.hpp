// Which single measurement would narrow the widest spread most. docs/calibration.md, "What to measure next". Test: tests/unit/calibrate_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "calibration/fit.hpp"

namespace stepcast::calibration {

struct Advice {
  std::string parameter;         // the one with the widest spread
  std::string measurement;       // in words
  double spread = 0, after = 0;  // of the parameter's logarithm, now and expected with that one measurement more
};

/// Nothing where no measurement would change it.
std::optional<Advice> next_measurement(const Fit& fit);

}  // namespace stepcast::calibration
