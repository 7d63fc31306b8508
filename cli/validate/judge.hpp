// Forecast against measurement, row by row and in total. docs/validate.md defines every figure. Tests: tests/unit/validate_test.cpp, tests/property/measured_rows_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibration/errors.hpp"
#include "calibration/runs.hpp"
#include "calibration/source_facts.hpp"
#include "cli/hardware.hpp"
#include "cli/report/report.hpp"
#include "program/program.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

struct Measured {
  std::string outcome = "ok";  // out_of_memory: the source says that the run did not fit
  std::optional<double> tokens_per_s_per_gpu, mfu;
  std::string from;  // how tokens/s were obtained
  std::optional<double> peak_memory_bytes;
  std::optional<calibration::MemoryQuantity> memory_quantity;
};

/// Times and rates of a forecast that does not fit are those of the same run with unlimited memory; its outcome stays out_of_memory.
struct Forecast {
  std::string outcome;
  double tokens_per_s_per_gpu = 0, step_time_s = 0, mfu = 0;
  double compute_s = 0, comm_s = 0, exposed_comm_s = 0;
  std::string bound;
  std::int64_t peak_allocated_bytes = 0, peak_active_bytes = 0, peak_reserved_bytes = 0, outside_pool_bytes = 0, retries_per_step = 0;
};

struct JudgedRow {
  std::string id, group, tier, gpu, model;
  std::int64_t n_gpus = 0;
  bool known_source = false;
  std::string skipped;  // why there is no forecast; empty if there is one
  Measured measured;
  Forecast forecast;
  std::optional<double> error, mfu_error, memory_error;  // forecast / measured - 1
  std::optional<Percentiles> interval;                   // of tokens/s/GPU
  std::vector<std::string> notes;
};

/// Rows of one kind together.
struct Group {
  calibration::ErrorSummary speed, memory;
  std::optional<double> rank_correlation;  // forecast against measured tokens/s/GPU
  std::optional<double> coverage;          // share of rows whose measured tokens/s/GPU lie in the interval
};

struct Judgement {
  std::vector<JudgedRow> rows;  // in the table's order, skipped ones included
  Group all;
  std::map<std::string, Group> by_source, by_tier, by_gpu;
};

struct JudgeOptions {
  MachineFactors factors{};   // of the machine that ran against its profile
  std::string gpu{}, node{};  // profiles of that machine (names or files) in place of those that facts name; runs on another GPU are skipped
  std::int64_t interval = 0;  // members of each row's interval; 0: none
  std::uint64_t seed = 0;
};

/// Simulates the row's scenario. Never throws: what can't be read or said is the reason in `skipped`.
JudgedRow judge_row(const calibration::Run& run, const calibration::Sources& sources, const JudgeOptions& options = {});
/// All rows on `threads` threads; the result does not depend on their number. `done` is called, from any thread, with the number of rows finished.
Judgement judge(const std::vector<calibration::Run>& runs, const calibration::Sources& sources, unsigned threads, const JudgeOptions& options = {},
                const std::function<void(std::size_t)>& done = {});
Judgement summarize(std::vector<JudgedRow> rows);

/// Step with many micro-batches: the first few are simulated, and where each further one takes equally long the rest is added (docs/validate.md, "Accumulation").
struct StepForecast {
  Report report;
  bool extended = false;
};

/// Forecasts of one scenario on several machines: its programs are built once.
class StepForecaster {
 public:
  explicit StepForecaster(const scenarios::Scenario& scenario);
  [[nodiscard]] StepForecast on(const Hardware& hardware);
  /// From now on the device has more memory than any run needs.
  void remove_memory_limit();

 private:
  struct Simulated {
    scenarios::Scenario scenario;
    program::Program program;
  };
  [[nodiscard]] StepForecast whole(const Hardware& hardware);
  scenarios::Scenario scenario_;
  std::optional<Simulated> whole_;
  std::vector<Simulated> shortened_;  // with few micro-batches, one more in each
};

/// Fills in times and memory of the forecast. What does not fit, though the run did, has the times of unlimited memory and a note. Throws NotExpressible where the program deadlocks.
StepForecast forecast_step(StepForecaster& forecaster, const Hardware& hardware, bool ran_out_of_memory, JudgedRow& row);

}  // namespace stepcast::cli
