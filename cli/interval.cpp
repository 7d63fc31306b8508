// See interval.hpp.
#include "cli/interval.hpp"

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "cli/hardware.hpp"
#include "cli/predict.hpp"
#include "cli/validate/parallel.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {

IntervalRow interval_of(const scenarios::Scenario& scenario, std::int64_t members, std::uint64_t seed) {
  if (scenario.fixed_costs) throw InputError("command line", "", "--interval: fixed costs are exact, nothing is drawn", "leave it out");
  const Hardware hardware = hardware_of(scenario);
  const program::Program program = program_of(scenario);
  std::vector<std::optional<Report>> reports(static_cast<std::size_t>(members));
  for_each_index(reports.size(), std::max(1u, std::thread::hardware_concurrency()), [&](std::size_t i) {
    const Hardware member = drawn(hardware, seed, i);
    Report report = forecast(scenario, program, &member);
    if (report.outcome == "ok") reports[i] = std::move(report);
  });
  IntervalRow row;
  row.members = members;
  row.seed = seed;
  std::vector<double> times, mfus;
  for (const std::optional<Report>& report : reports) {
    if (!report) continue;
    times.push_back(report->step_time_s);
    mfus.push_back(report->mfu);
  }
  row.left_out = members - static_cast<std::int64_t>(times.size());
  row.step_time_s = percentiles(times);
  row.mfu = percentiles(mfus);
  return row;
}

}  // namespace stepcast::cli
