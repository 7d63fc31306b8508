// Which pass of a training step a call belongs to: forward, its repetition in the backward (recomputation), backward, optimizer.
// Rules: docs/diagnose.md, "Passes". Test: tests/unit/profile_passes_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trace/profile/coverage.hpp"
#include "trace/profile/device_times.hpp"

namespace stepcast::trace::profile {

enum class Pass : std::uint8_t { forward, recomputation, backward, optimizer, unknown };
inline constexpr std::size_t kPasses = 5;
const char* name(Pass pass);

class Passes {
 public:
  explicit Passes(const Profile& profile);
  /// Of what `thread` does at `at`.
  [[nodiscard]] Pass at(std::uint32_t thread, Time at) const;
  /// Of the call that launched the operation; unknown where the file has none.
  [[nodiscard]] Pass of(const Profile& profile, const DeviceOp& op) const;

 private:
  struct Thread {
    Coverage backward, repeated;
  };
  std::vector<Thread> threads_;
  Coverage optimizer_;
};

/// Compute kernels that one pass launched.
struct PassTotal {
  std::int64_t kernels = 0;
  Time compute{};  // sum of their times
};
using PassTotals = std::array<PassTotal, kPasses>;
PassTotals pass_totals(const Profile& profile, std::uint32_t device, const Passes& passes);

/// Steps as a device ran them: each from the end of what the step before had launched to the end of what it launched itself. Times and kernels of all of them.
struct StepsOnDevice {
  std::int64_t steps = 0;  // 0: no steps are marked, or only one, and `times` is the whole window
  DeviceTimes times;
  PassTotals passes{};
  [[nodiscard]] Time mean() const { return times.span / std::max<std::int64_t>(1, steps); }
};
StepsOnDevice steps_on_device(const Profile& profile, std::uint32_t device, const Passes& passes);

}  // namespace stepcast::trace::profile
