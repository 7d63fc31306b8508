// Every row of the table of published runs that can be forecast, where that table lies beside the tree: no step is shorter than its compute, than the bytes of a communicator
// over its links, than its host's work; exposed communication is part of communication. And all settings of the facts are understood.
#include <doctest/doctest.h>

#include <filesystem>
#include <mutex>
#include <set>

#include "cli/predict.hpp"
#include "cli/validate/judge.hpp"
#include "cli/validate/parallel.hpp"
#include "cli/validate/row_scenario.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"
#include "program/count.hpp"
#include "support/paths.hpp"
#include "support/sanitized.hpp"

using namespace stepcast;
using calibration::Run;

namespace {

std::vector<Run> published_runs() {
  const std::string path = test::source_dir() + "/../shared/measured/fsdp_runs_dev.csv";
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: the table of published runs is not there: " << path);
    return {};
  }
  return calibration::read_runs_file(path).runs;
}

/// Times of the last step, from prices alone, in seconds.
struct Bounds {
  double communicator = 0, host = 0;
};

Bounds bounds(const program::Program& program, const sim::PriceList& prices) {
  std::array<SimTime, program::kCommunicators> communicators{};
  for (const program::Op& op : program.slice(program.steps.back())) {
    if (op.kind != program::OpKind::collective) continue;
    communicators[static_cast<std::size_t>(program.collectives[op.id].communicator)] += prices.collectives[op.id].alone;
  }
  SimTime host{};
  const auto counts = program::count(program, program.steps.back());
  for (std::size_t work = 0; work < counts.host_work.size(); ++work) host += prices.host[work] * counts.host_work[work];
  return {to_seconds(*std::max_element(communicators.begin(), communicators.end())).in(second), to_seconds(host).in(second)};
}

/// What is wrong with the forecast of a row; empty if nothing is.
std::string violation(const Run& run, const calibration::SourceFacts& facts) {
  std::vector<std::string> notes;
  scenarios::Scenario scenario = cli::scenario_of_row(run, facts, notes);
  scenario.batch.grad_accum = std::min<std::int64_t>(scenario.batch.grad_accum, 4);
  scenario.allocator.device_memory = std::int64_t{1} << 46;
  const auto prediction = cli::predict(scenario);
  const auto& r = prediction.report;
  if (r.outcome != "ok") return r.outcome;
  const auto cluster = scenarios::hardware(scenario);
  const Bounds least = bounds(prediction.program, sim::price(prediction.program, hw::CostModel(hw::gpu_profile(cluster.gpu), cluster)));
  if (r.exposed_comm_s > r.comm_s) return "more exposed than total communication";
  if (r.compute_s > r.step_time_s * (1 + 1e-9)) return "shorter than its compute";
  if (std::abs(r.compute_s + r.exposed_comm_s + r.idle_s - r.step_time_s) > 1e-9 * r.step_time_s) return "the parts do not add up";
  if (least.communicator > r.step_time_s * (1 + 1e-9)) return "shorter than its bytes over its links";
  if (least.host > r.step_time_s * 1.01) return "shorter than its host's work";  // a host that was ahead may use up a little of its lead
  return "";
}

}  // namespace

TEST_CASE("conservation over all published runs") {
  const std::vector<Run> runs = published_runs();
  const calibration::Sources sources;
  std::vector<std::string> wrong(runs.size());
  std::atomic<int> forecast{0};
  cli::for_each_index(runs.size(), 2, [&](std::size_t i) {
    if (test::kSanitized && i % 10 != 0) return;
    const auto facts = sources.of(runs[i]);
    try {
      wrong[i] = violation(calibration::completed(runs[i], facts), facts);
      ++forecast;
    } catch (const cli::NotExpressible&) {
    } catch (const InputError& error) { wrong[i] = error.what(); }
  });
  for (std::size_t i = 0; i < runs.size(); ++i) CHECK_MESSAGE(wrong[i].empty(), runs[i].id << ": " << wrong[i]);
  if (!runs.empty()) CHECK(forecast > (test::kSanitized ? 35 : 390));
}

TEST_CASE("every setting of the facts exists: no row is refused for a key or a value") {
  const std::vector<Run> runs = published_runs();
  const calibration::Sources sources;
  std::set<std::string> reached;
  for (const Run& raw : runs) {
    const auto facts = sources.of(raw);
    const Run run = calibration::completed(raw, facts);
    reached.insert(facts.name);
    std::vector<std::string> notes;
    try {
      static_cast<void>(cli::scenario_of_row(run, facts, notes));
    } catch (const cli::NotExpressible&) {
    } catch (const InputError& error) { FAIL_CHECK(error.what()); }
  }
  for (const std::string& name : sources.names()) {
    if (!runs.empty() && name != "TinyLlama" && name != "ATorch") CHECK_MESSAGE(reached.contains(name), "no row of " << name);
  }
}
