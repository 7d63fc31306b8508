// How forecasts fare on rows that a fit has not seen: the machine factors common to all rows are fitted to some of a table and judged on the others, source by source or by random
// halves. docs/validate.md, "Rows held out". Test: tests/unit/hold_out_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/validate/recalibrate.hpp"

namespace stepcast::cli {

struct Fold {
  std::string name;  // the source that is left out, or "half SEED"
  std::vector<std::size_t> fitted, judged;
};

/// Each source with a forecast once, the others fitted.
std::vector<Fold> folds_by_source(const Judgement& judgement);
/// A random half of all rows with a forecast is fitted, the other judged; which rows, the seed decides by their ids.
Fold half(const Judgement& judgement, std::uint64_t seed);

struct HeldOut {
  Fold fold;
  std::array<FittedFactor, 4> factors;
  calibration::ErrorSummary before, after;  // of the rows judged, as shipped and with the factors fitted to the others
};

struct HoldOut {
  std::vector<HeldOut> folds;
  calibration::ErrorSummary before, after;  // of all folds' judged rows together
};

/// `judgement` is that of `runs` with the profiles as they are. The fit takes logarithms of errors as linear in those of the factors, by one set of differences for all folds; what is
/// judged is simulated with the fitted factors.
HoldOut hold_out(const std::vector<calibration::Run>& runs, const Judgement& judgement, const calibration::Sources& sources, std::vector<Fold> folds,
                 unsigned threads);

}  // namespace stepcast::cli
