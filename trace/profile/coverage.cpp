// Test: tests/unit/profile_metrics_test.cpp.
#include "trace/profile/coverage.hpp"

#include <algorithm>

namespace stepcast::trace::profile {

Coverage::Coverage(Spans spans) : spans_(interval_sets::merge(std::move(spans))) {
  Time sum{};
  sums_.reserve(spans_.size());
  for (const Span& span : spans_) {
    sums_.push_back(sum);
    sum += span.end - span.begin;
  }
}

Time Coverage::before(Time time) const {
  const auto next = std::partition_point(spans_.begin(), spans_.end(), [time](const Span& span) { return span.begin < time; });
  if (next == spans_.begin()) return {};
  const Span& last = *(next - 1);
  return sums_[static_cast<std::size_t>(next - spans_.begin()) - 1] + std::min(time, last.end) - last.begin;
}

}  // namespace stepcast::trace::profile
