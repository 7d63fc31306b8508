// See repeat.hpp.
#include "real_backend/bench/repeat.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace stepcast::real::bench {
namespace {

double at(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Standard error of the median relative to it, were the values normal: 1.2533 sigma / sqrt(n), sigma = (third - first) / 1.349.
double noise_of(const Quartiles& q) {
  if (q.median <= 0) return 0;
  return 1.2533 / 1.349 * (q.third - q.first) / q.median / std::sqrt(static_cast<double>(q.repeats));
}

}  // namespace

Quartiles quartiles(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return {at(seconds, 0.25), at(seconds, 0.5), at(seconds, 0.75), static_cast<std::int64_t>(seconds.size()), sum / static_cast<double>(seconds.size())};
}

Quartiles repeat(const Effort& effort, const std::function<double()>& once) {
  for (int i = 0; i < effort.warm_up; ++i) once();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<double> times;
  for (int i = 1; i <= effort.most; ++i) {
    times.push_back(once());
    if (effort.between) effort.between();
    if (i < effort.least) continue;
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > effort.seconds) break;
    if (i % effort.least == 0 && noise_of(quartiles(times)) < effort.noise) break;
  }
  return quartiles(times);
}

}  // namespace stepcast::real::bench
