// See errors.hpp.
#include "calibration/errors.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace stepcast::calibration {
namespace {

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) rank[order[i]] = 0.5 * static_cast<double>(begin + end - 1);
    begin = end;
  }
  return rank;
}

double mean(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()); }

}  // namespace

double percentile(std::span<const double> values, double share) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double place = share * static_cast<double>(sorted.size() - 1), below = std::floor(place);
  const auto i = static_cast<std::size_t>(below);
  if (i + 1 >= sorted.size()) return sorted.back();
  return sorted[i] + (place - below) * (sorted[i + 1] - sorted[i]);
}

ErrorSummary summarize(std::span<const double> errors) {
  if (errors.empty()) return {};
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  return {errors.size(), percentile(sizes, 0.5), mean(sizes), percentile(sizes, 0.9), percentile(sizes, 1), percentile(errors, 0.5)};
}

std::optional<double> rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size() || a.size() < 3) return std::nullopt;
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

}  // namespace stepcast::calibration
