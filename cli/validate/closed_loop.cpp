// See closed_loop.hpp.
#include "cli/validate/closed_loop.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "calibration/measurement_file.hpp"
#include "cli/predict.hpp"
#include "cli/train/run.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"

namespace stepcast::cli {
namespace {

using real::bench::Quartiles;

constexpr const char *kBaseGpu = "host-cpu", *kBaseNode = "host-threads";

void check(const LoopScenario& scenario) {
  if (scenario.scenario.fixed_costs) throw InputError(scenario.scenario.name, "/fixed_costs", "has no kernels that could be run", "leave it out");
  if (scenario.scenario.cluster.nodes != 1) throw InputError(scenario.scenario.name, "/cluster/nodes", "all ranks run on this machine", "1 node");
}

double median(std::vector<double> values) { return values.empty() ? 0 : real::bench::quartiles(std::move(values)).median; }

/// The peaks of one round, half of the others lie below.
LoopPeaks middle(std::vector<LoopPeaks> rounds) {
  const auto half = rounds.begin() + (std::ssize(rounds) - 1) / 2;
  std::nth_element(rounds.begin(), half, rounds.end());
  return *half;
}

/// Points of all scenarios by their rows, and what each round measured of them.
class Measurements {
 public:
  /// Those of the scenario that this round has not measured yet.
  void measure(const BenchPlan& plan, const real::bench::Effort& effort, std::size_t round) {
    for (const BenchPoint& point : plan.points()) {
      auto& rounds = times_[point.row.dump()];
      if (rounds.empty()) order_.push_back(point.row);
      if (rounds.size() == round) rounds.push_back(point.measure(effort));
    }
  }
  [[nodiscard]] nlohmann::ordered_json file() const {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const auto& row : order_) rows.push_back(timed(row, over_rounds(times_.at(row.dump()))));
    return measurement_file(std::move(rows));
  }

 private:
  /// The median round of each figure.
  static Quartiles over_rounds(const std::vector<Quartiles>& rounds) {
    std::vector<double> first, middle, third, mean;
    std::int64_t repeats = 0;
    for (const Quartiles& q : rounds)
      first.push_back(q.first), middle.push_back(q.median), third.push_back(q.third), mean.push_back(q.mean), repeats += q.repeats;
    return {median(first), median(middle), median(third), repeats, median(mean)};
  }
  std::vector<nlohmann::ordered_json> order_;
  std::map<std::string, std::vector<Quartiles>> times_;
};

/// What the rounds of one scenario left.
struct LoopRun {
  std::vector<double> steps, exposed;
  std::vector<std::string> failures;
  std::vector<LoopPeaks> peaks;

  void add(const Trained& trained) {
    failures = trained.failures;
    if (!failures.empty()) return;
    const Report& report = trained.measured.report;
    const auto& all = report.step_times_s;
    steps.insert(steps.end(), all.end() - std::min<std::ptrdiff_t>(report.measured_steps, std::ssize(all)), all.end());
    exposed.push_back(report.exposed_comm_s);
    peaks.push_back({report.peak_allocated_bytes, report.peak_reserved_bytes});
  }
  void fill(LoopRow& row) const {
    row.failures = failures;
    if (!failures.empty()) return;
    const Quartiles q = real::bench::quartiles(steps);
    row.measured = {q.median, median(exposed), middle(peaks)};
    row.rounds = peaks;
    row.noise = (q.third - q.first) / 2 / q.median;
    row.steps = q.repeats;
  }
};

BenchPlan plan_of(const LoopScenario& scenario) {
  BenchPlan plan;
  add_host_calls(plan);
  add_program(program_of(scenario.scenario), scenarios::ranks(scenario.scenario), plan);
  return plan;
}

}  // namespace

std::vector<LoopScenario> loop_scenarios(const std::string& folder, std::vector<std::string> sets) {
  std::error_code error;
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json" && entry.is_regular_file()) files.insert(entry.path());
  }
  if (error) throw InputError(folder, "", "cannot be read as a folder: " + error.message());
  if (files.empty()) throw InputError(folder, "", "holds no scenario", "files that end with .json");
  sets.emplace_back("/kernels/set=native");
  std::vector<LoopScenario> result;
  for (const auto& file : files) {
    result.push_back({file.stem().string(), scenarios::read_scenario(file.string(), sets)});
    check(result.back());
  }
  return result;
}

calibration::HostProfiles host_profiles_of(const nlohmann::ordered_json& measurements, const std::string& file) {
  const calibration::MeasurementFile read = calibration::read_measurement_file(Json::parse(measurements.dump()), file);
  return calibration::host_profiles({hw::gpu_profile(kBaseGpu), hw::node_profile(kBaseNode)}, {read});
}

void predict(const LoopScenario& scenario, const calibration::HostProfiles& profiles, LoopRow& row) {
  Hardware hardware{profiles.gpu, {profiles.gpu.name, scenarios::ranks(scenario.scenario), 1, profiles.node}};
  hw::Constant& memory = hardware.gpu.constants.at("device_memory");
  memory.value /= scenarios::ranks(scenario.scenario);  // the machine's: a rank has its share
  const Report report = forecast(scenario.scenario, program_of(scenario.scenario), &hardware);
  row.id = scenario.id;
  row.ranks = scenarios::ranks(scenario.scenario);
  row.predicted_outcome = report.outcome;
  row.predicted = {report.step_time_s, report.exposed_comm_s, {report.peak_allocated_bytes, report.peak_reserved_bytes}};
}

std::size_t loop_work(const std::vector<LoopScenario>& scenarios, const LoopOptions& options) {
  return scenarios.size() * static_cast<std::size_t>(options.rounds);
}

Loop close_loop(const std::vector<LoopScenario>& scenarios, const LoopOptions& options, const std::optional<nlohmann::ordered_json>& measurements,
                const std::function<void(std::size_t)>& progress) {
  Measurements measured;
  std::vector<LoopRun> runs(scenarios.size());
  real::bench::Effort effort;
  effort.seconds = options.seconds;
  effort.least = 5;
  std::size_t done = 0;
  for (std::size_t round = 0; round < static_cast<std::size_t>(options.rounds); ++round) {
    for (std::size_t i = 0; i < scenarios.size(); ++i) {
      if (!measurements) measured.measure(plan_of(scenarios[i]), effort, round);
      if (runs[i].failures.empty()) runs[i].add(train(scenarios[i].scenario, {.closed_form = false, .deadline_s = options.deadline_s}));
      if (progress) progress(++done);
    }
  }
  Loop loop;
  loop.measurements = measurements ? *measurements : measured.file();
  loop.profiles = host_profiles_of(loop.measurements, "measurements.json");
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    LoopRow& row = loop.rows.emplace_back();
    predict(scenarios[i], loop.profiles, row);
    runs[i].fill(row);
  }
  return loop;
}

LoopSummary summarize(const std::vector<LoopRow>& rows) {
  LoopSummary summary;
  std::vector<double> errors, noise;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].compared()) continue;
    errors.push_back(rows[i].error());
    noise.push_back(rows[i].noise);
    summary.memory_exact += rows[i].memory_exact() ? 1U : 0U;
    for (std::size_t j = 0; j < i; ++j) {
      if (!rows[j].compared()) continue;
      const LoopRow &a = rows[i], &b = rows[j];
      const double distance = a.measured.step_s - b.measured.step_s;
      if (std::abs(distance) <= a.noise * a.measured.step_s + b.noise * b.measured.step_s) continue;
      ++summary.pairs;
      summary.ordered += (a.predicted.step_s - b.predicted.step_s) * distance > 0 ? 1U : 0U;
    }
  }
  summary.step = calibration::summarize(errors);
  summary.median_noise = median(noise);
  return summary;
}

}  // namespace stepcast::cli
