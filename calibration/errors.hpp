// Statistics of forecasts against measurements. Percentiles interpolate between the sorted values (rank p (n - 1)). Test: tests/unit/errors_test.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace stepcast::calibration {

/// Of relative errors, forecast / measured - 1: size of the error, and the median signed error as the bias. All 0 if there is none.
struct ErrorSummary {
  std::size_t count = 0;
  double median = 0, mean = 0, p90 = 0, max = 0, bias = 0;
};

ErrorSummary summarize(std::span<const double> errors);

/// Value below which `share` of the values lie. `values` is not empty.
double percentile(std::span<const double> values, double share);

/// Spearman's rank correlation: of the ranks, equal values sharing their mean rank. Nothing with fewer than three pairs or where either side is all equal.
std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace stepcast::calibration
