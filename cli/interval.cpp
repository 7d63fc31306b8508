// See interval.hpp.
#include "cli/interval.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/hardware.hpp"
#include "cli/predict.hpp"
#include "cli/validate/parallel.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {

namespace {

/// Causes that stand for many constants have names for people; others are called as their constant.
std::string cause_words(const std::string& cause) {
  if (cause == "host_") return "host times";
  if (cause == "attention_") return "attention rates";
  if (cause == "efficiency_") return "efficiencies of memory-bound kernels";
  return cause == "network_hop" ? "latencies between nodes" : cause;
}

unsigned interval_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

/// Each cause by itself, one standard deviation up; what does not move the step is left out.
std::vector<UncertainCause> causes_of(const scenarios::Scenario& scenario, const program::Program& program, const Hardware& hardware) {
  const double step = forecast(scenario, program, &hardware).step_time_s;
  const std::vector<std::string> names = uncertain_causes(hardware);
  std::vector<UncertainCause> causes(names.size());
  for_each_index(names.size(), interval_threads(), [&](std::size_t i) {
    const Hardware moved = moved_up(hardware, names[i]);
    const Report report = forecast(scenario, program, &moved);
    causes[i] = {cause_words(names[i]), report.outcome == "ok" ? report.step_time_s : step};
  });
  const auto change = [&](const UncertainCause& cause) { return std::abs(cause.step_time_s - step); };
  std::erase_if(causes, [&](const UncertainCause& cause) { return change(cause) == 0; });
  std::stable_sort(causes.begin(), causes.end(), [&](const auto& a, const auto& b) { return change(a) > change(b); });
  return causes;
}

}  // namespace

IntervalRow interval_of(const scenarios::Scenario& scenario, std::int64_t members, std::uint64_t seed) {
  if (scenario.fixed_costs) throw InputError("command line", "", "--interval: fixed costs are exact, nothing is drawn", "leave it out");
  const Hardware hardware = hardware_of(scenario);
  const program::Program program = program_of(scenario);
  std::vector<std::optional<Report>> reports(static_cast<std::size_t>(members));
  for_each_index(reports.size(), interval_threads(), [&](std::size_t i) {
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
  row.causes = causes_of(scenario, program, hardware);
  return row;
}

}  // namespace stepcast::cli
