// The closed loop: the operations that scenarios need are measured on this machine, every scenario is forecast from that measurement file alone and run for real, and the
// two are compared. docs/validate.md, "Scenarios"; test: tests/unit/closed_loop_test.cpp, tests/golden/closed_loop_test.cpp.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "calibration/errors.hpp"
#include "calibration/host_profile.hpp"
#include "cli/bench/rows.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

struct LoopScenario {
  std::string id;  // the file's name without its ending
  scenarios::Scenario scenario;
};

/// All *.json files of a folder, by name, with native kernels and these changes. Throws InputError: none, one that can't be run on one machine.
std::vector<LoopScenario> loop_scenarios(const std::string& folder, std::vector<std::string> sets);

struct LoopOptions {
  std::int64_t rounds = 3;  // of measuring everything and running everything, so that both see the machine at the same times
  double seconds = 0.1;     // of one point in one round, at most
  double deadline_s = 60;
};

struct LoopPeaks {
  std::int64_t allocated_bytes = 0, reserved_bytes = 0;
  auto operator<=>(const LoopPeaks&) const = default;
};

/// What a run or its forecast came to.
struct LoopResult {
  double step_s = 0, exposed_comm_s = 0;
  LoopPeaks peaks;
};

struct LoopRow {
  std::string id;
  std::int64_t ranks = 1;
  std::string predicted_outcome = "ok";
  std::vector<std::string> failures;  // of the run; nothing is compared then
  LoopResult predicted, measured;     // measured: the median of steps, exposed communication and peaks of the median round
  std::vector<LoopPeaks> rounds;      // peaks of each
  double noise = 0;                   // half the distance between the quartiles of the measured steps over their median
  std::int64_t steps = 0;             // measured
  [[nodiscard]] bool compared() const { return failures.empty() && predicted_outcome == "ok"; }
  [[nodiscard]] double error() const { return predicted.step_s / measured.step_s - 1; }
  [[nodiscard]] bool memory_exact() const { return predicted.peaks == measured.peaks; }
  [[nodiscard]] std::int64_t exact_rounds() const { return std::count(rounds.begin(), rounds.end(), predicted.peaks); }
};

struct Loop {
  std::vector<LoopRow> rows;
  nlohmann::ordered_json measurements;  // the file
  calibration::HostProfiles profiles;   // made of it
};

struct LoopSummary {
  calibration::ErrorSummary step;  // of the step times
  double median_noise = 0;
  std::size_t pairs = 0, ordered = 0;  // pairs whose measured times differ by more than their noise together; those of them in the right order
  std::size_t memory_exact = 0;        // rows
};
LoopSummary summarize(const std::vector<LoopRow>& rows);

/// The profiles that a measurement file gives, over the built-in ones of a host. Throws InputError.
calibration::HostProfiles host_profiles_of(const nlohmann::ordered_json& measurements, const std::string& file);
/// The forecast of a scenario on ranks of one machine with these profiles.
void predict(const LoopScenario& scenario, const calibration::HostProfiles& profiles, LoopRow& row);

/// `measurements`: a measurement file to forecast from, in place of one that is made here. `progress` is called with how many of `loop_work` are done; may be empty.
Loop close_loop(const std::vector<LoopScenario>& scenarios, const LoopOptions& options, const std::optional<nlohmann::ordered_json>& measurements,
                const std::function<void(std::size_t)>& progress);
std::size_t loop_work(const std::vector<LoopScenario>& scenarios, const LoopOptions& options);

}  // namespace stepcast::cli
