// How much of any window a set of intervals covers, in the logarithm of its size. Private to trace/profile. Test: tests/unit/profile_metrics_test.cpp.
#pragma once

#include <vector>

#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

class Coverage {
 public:
  Coverage() = default;
  explicit Coverage(Spans spans);
  /// Length of the set within [begin, end).
  [[nodiscard]] Time within(Time begin, Time end) const { return end > begin ? before(end) - before(begin) : Time{}; }
  [[nodiscard]] const Spans& spans() const { return spans_; }

 private:
  [[nodiscard]] Time before(Time time) const;

  Spans spans_;             // merged
  std::vector<Time> sums_;  // of the lengths before each
};

}  // namespace stepcast::trace::profile
