// From a scenario to a report: program, prices, simulation, breakdown. The one way that every forecasting command goes. Test: tests/golden/cli_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/hardware.hpp"
#include "cli/report/report.hpp"
#include "program/program.hpp"
#include "scenarios/scenario.hpp"
#include "sim/simulate.hpp"

namespace stepcast::cli {

struct Prediction {
  scenarios::Scenario scenario;
  program::Program program;
  sim::Result result;  // with the trace of the recorded steps
  Report report;
};

/// Runs the scenario. Out of memory and deadlock are outcomes in the report. `warnings` from reading the scenario are passed on. Throws InputError.
Prediction predict(const scenarios::Scenario& scenario, std::vector<std::string> warnings = {});

/// The same report, with a trace of the last step alone where steps are alike: for pages that are drawn anew at each change. Test: tests/unit/serve_test.cpp.
Prediction predict_last_step(const scenarios::Scenario& scenario, std::vector<std::string> warnings = {});

/// The program that predict runs.
program::Program program_of(const scenarios::Scenario& scenario);

/// The report of predict, from the scenario's program or an equal one, and no trace: for many forecasts. `hardware`: other than the scenario's.
Report forecast(const scenarios::Scenario& scenario, const program::Program& program, const Hardware* hardware = nullptr);

/// Report of a finished simulation; `gpu` and `cluster` are null in fixed-cost mode.
Report make_report(const scenarios::Scenario& scenario, const program::Program& program, const sim::Result& result, const hw::CostModel* model);
/// The same of steps that differ, where their times are means, or that don't.
Report make_report(const scenarios::Scenario& scenario, const program::Program& program, const sim::Result& result, const hw::CostModel* model,
                   bool steps_vary);

/// `run --json`: the report with the resolved scenario beside it.
nlohmann::ordered_json json_of(const Prediction& prediction);

}  // namespace stepcast::cli
