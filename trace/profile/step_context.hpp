// Where in the step a launch was made: in gradient clipping, in the optimizer, in which step. Private to trace/profile. Test: tests/unit/profile_finer_causes_test.cpp.
#pragma once

#include <cstdint>

#include "trace/profile/coverage.hpp"

namespace stepcast::trace::profile {

class StepContext {
 public:
  explicit StepContext(const Profile& profile);

  [[nodiscard]] bool clipping(Time at) const { return clips_.within(at, at + Time(1)) > Time{}; }
  [[nodiscard]] bool optimizer(Time at) const { return optimizer_.within(at, at + Time(1)) > Time{}; }
  /// Whether the two times lie in different steps (ProfilerStep ranges of the host).
  [[nodiscard]] bool boundary(Time before, Time after) const;

 private:
  Coverage clips_, optimizer_;
  std::vector<Time> steps_;  // begins, in order
};

}  // namespace stepcast::trace::profile
