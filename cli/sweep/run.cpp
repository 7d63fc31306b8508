// See run.hpp.
#include "cli/sweep/run.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "cli/predict.hpp"
#include "cli/sweep/points.hpp"
#include "cli/validate/parallel.hpp"

namespace stepcast::cli {
namespace {

/// Scenarios that one thread takes at a time: neighbours mostly share their program.
constexpr std::size_t kChunk = 8;

/// Binding names every member, so that a new one can't be forgotten.
bool same(const program::StepSpec& a, const program::StepSpec& b) {
  const auto members = [](const program::StepSpec& spec) {
    const auto& [model, policy, batch, input, precision, recompute, kernels, optimizer, world, sync_step, sync_phase] = spec;
    return std::tie(model, policy, batch, input, precision, recompute, kernels, optimizer, world, sync_step, sync_phase);
  };
  return members(a) == members(b);
}

/// The program of the scenario before, for as long as the next one has the same.
class LastProgram {
 public:
  /// True if it had to be built.
  bool take(const scenarios::Scenario& scenario) {
    const program::StepSpec spec = scenarios::step_spec(scenario);
    if (spec_ && steps_ == scenario.run.steps && same(*spec_, spec)) return false;
    spec_.reset();
    program_ = program_of(scenario);
    spec_ = spec;
    steps_ = scenario.run.steps;
    return true;
  }
  [[nodiscard]] const program::Program& get() const { return program_; }

 private:
  std::optional<program::StepSpec> spec_;
  std::int32_t steps_ = 0;
  program::Program program_;
};

}  // namespace

std::vector<SweepPlan::Unique> open_in(const SweepPlan& plan, const SweepStore& store) {
  std::vector<SweepPlan::Unique> open;
  for (const SweepPlan::Unique& unique : plan.uniques) {
    if (!store.has(unique.key)) open.push_back(unique);
  }
  return open;
}

std::vector<SweepPlan::Unique> part_of(const std::vector<SweepPlan::Unique>& open, std::size_t index, std::size_t count) {
  std::vector<SweepPlan::Unique> part;
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (i / kChunk % count == index) part.push_back(open[i]);
  }
  return part;
}

std::size_t simulate(const SweepWork& work, const std::vector<SweepPlan::Unique>& open, const Keep& keep) {
  std::atomic<std::size_t> programs{0};
  for_each_index((open.size() + kChunk - 1) / kChunk, work.threads, [&](std::size_t chunk) {
    LastProgram program;
    for (std::size_t i = chunk * kChunk; i < std::min(open.size(), (chunk + 1) * kChunk); ++i) {
      const scenarios::Scenario resolved = work.scenario.with(work.grid.sets(open[i].point));
      if (program.take(resolved)) ++programs;
      keep(open[i].key, point_of(resolved, program.get()).dump());
    }
  });
  return programs;
}

SweepCounts run_sweep(const SweepWork& work, SweepStore& store, const std::function<void(std::size_t)>& done) {
  const std::vector<SweepPlan::Unique> open = open_in(work.plan, store);
  std::mutex mutex;  // guards what follows, and calls of done
  std::size_t finished = 0;
  const std::size_t programs = simulate(work, open, [&](std::uint64_t key, const std::string& point) {
    store.add(key, point);
    const std::scoped_lock lock(mutex);
    if (++finished; done) done(finished);
  });
  return {open.size(), work.plan.uniques.size() - open.size(), programs};
}

}  // namespace stepcast::cli
