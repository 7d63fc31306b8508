// See problem.hpp.
#include "cli/tune/problem.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/hardware.hpp"
#include "cli/inputs.hpp"
#include "cli/predict.hpp"
#include "cli/validate/judge.hpp"
#include "hw_models/input_error.hpp"
#include "planner/bounds.hpp"
#include "program/build.hpp"
#include "scenarios/names.hpp"

namespace stepcast::cli {
namespace {

using planner::ClassBound, planner::Score;
using Sets = std::vector<std::string>;

/// Micro-batches from which on a step is bounded by what each further one adds.
constexpr std::int64_t kSimulatedMicroBatches = 3;
/// Steps of a search's simulation: the second and third are alike unless the allocator retries.
constexpr std::int32_t kPricedSteps = 3;
/// As many micro-batches are simulated one by one; more are extended (cli/validate/forecast_step.cpp).
constexpr std::int64_t kSimulated = 24;

constexpr ClassBound kRefused{true, 0, 0};

double seconds(SimTime time) { return to_seconds(time).in(second); }

scenarios::Scenario shortened(scenarios::Scenario scenario, std::int32_t steps) {
  scenario.run.steps = scenario.run.active = steps;
  scenario.run.wait = scenario.run.warmup = 0;
  return scenario;
}

/// The scenario of some sets; nothing where the rules refuse it.
std::optional<scenarios::Scenario> read(const scenarios::ScenarioTemplate& scenario, const Sets& sets, std::int32_t steps) {
  try {
    return shortened(scenario.with(sets), steps);
  } catch (const InputError&) { return std::nullopt; }
}

struct Priced {
  program::Program program;
  Inputs inputs;
};

Priced price(const scenarios::Scenario& scenario) {
  Priced priced{program_of(scenario), {}};
  priced.inputs = inputs_of(scenario, priced.program);
  return priced;
}

struct Bounded {
  planner::StepWork work;
  std::int64_t memory = 0;
};

Bounded bounded(const scenarios::Scenario& scenario) {
  const Priced priced = price(scenario);
  return {planner::work_of(priced.program, priced.inputs.prices), planner::least_memory(priced.program)};
}

Bounded bounded_with(scenarios::Scenario scenario, std::int64_t micro_batches) {
  scenario.batch.grad_accum = micro_batches;
  return bounded(scenario);
}

/// Work and memory of a step; of one with many micro-batches from two short ones.
Bounded bounds_of(const scenarios::Scenario& scenario) {
  const std::int64_t wanted = scenario.batch.grad_accum;
  if (wanted <= kSimulatedMicroBatches) return bounded(scenario);
  const Bounded shorter = bounded_with(scenario, kSimulatedMicroBatches - 1), longer = bounded_with(scenario, kSimulatedMicroBatches);
  return {shorter.work.extended(longer.work, wanted - kSimulatedMicroBatches), longer.memory};
}

std::int64_t limit_of(const sim::Options& options) {
  return static_cast<std::int64_t>(options.allocator.memory_fraction.value_or(1) * static_cast<double>(options.pool_bytes));
}

Score scored(sim::Outcome outcome) {
  Score score;
  score.outcome = outcome == sim::Outcome::ok              ? Score::Outcome::ok
                  : outcome == sim::Outcome::out_of_memory ? Score::Outcome::out_of_memory
                                                           : Score::Outcome::deadlock;
  return score;
}

/// The time of a step, nothing recorded. `retries`: the allocator gave its cache back.
Score simulated(Priced& priced, bool& retries) {
  priced.inputs.options.record_host = false;
  priced.inputs.options.record_from_step = kPricedSteps;
  const sim::Result result = sim::simulate(priced.program, priced.inputs.prices, priced.inputs.options);
  Score score = scored(result.outcome);
  if (score.outcome == Score::Outcome::ok) score.time_s = seconds(result.step_end[kPricedSteps - 1] - result.step_end[kPricedSteps - 2]);
  score.peak_bytes = result.peak_reserved;
  retries = result.memory.retries > 0;
  return score;
}

Score extended(const scenarios::Scenario& scenario, bool& retries) {
  const Report report = whole_step(scenario);
  Score score;
  score.outcome = report.outcome == "ok" ? Score::Outcome::ok : report.outcome == "deadlock" ? Score::Outcome::deadlock : Score::Outcome::out_of_memory;
  if (score.outcome == Score::Outcome::ok) score.time_s = report.step_time_s;
  score.peak_bytes = report.peak_reserved_bytes;
  retries = report.num_alloc_retries > 0;
  return score;
}

void append(Sets& sets, const std::vector<const planner::Option*>& choices) {
  for (const planner::Option* choice : choices) sets.insert(sets.end(), choice->sets.begin(), choice->sets.end());
}

}  // namespace

Report whole_step(const scenarios::Scenario& scenario) { return StepForecaster(scenario).on(hardware_of(scenario)).report; }

TuneProblem::TuneProblem(scenarios::ScenarioTemplate scenario, const scenarios::Scenario& base, planner::Space space)
    : scenario_(std::move(scenario)), space_(std::move(space)) {
  for (std::size_t f = 0; f < space_.families.size(); ++f) {
    for (std::size_t work = 0; work < space_.families[f].work.size(); ++work) groups_.push_back({f, work});
  }
  const std::string framework = spelled(scenarios::kFrameworks, base.policy.framework);
  if (base.policy.use_orig_params) own_policy_.push_back("/policy/use_orig_params=true");
  own_policy_.push_back(std::string("/policy/release=\"") + spelled(scenarios::kReleases, base.policy.release) + "\"");
  memory_limit_ = limit_of(price(shortened(base, 1)).inputs.options);
}

Sets TuneProblem::head(const planner::Family& family) const {
  Sets sets = {"/policy=null", "/policy/framework=" + family.framework};
  for (const std::string& own : own_policy_) {
    const bool fsdp1_only = own.find("use_orig_params") != std::string::npos || own.find("before-2.1") != std::string::npos;
    if (family.framework == "fsdp1" || !fsdp1_only) sets.push_back(own);
  }
  return sets;
}

Sets TuneProblem::sets_of(std::size_t group, std::size_t cls, std::size_t order, std::size_t allocator) const {
  const planner::Family& family = space_.families[groups_[group].family];
  Sets sets = head(family);
  append(sets, family.work.choices(groups_[group].work));
  append(sets, family.policy.choices(cls));
  append(sets, family.order.choices(order));
  append(sets, space_.allocators.choices(allocator));
  return sets;
}

Sets TuneProblem::sets(const planner::Evaluated& point) const { return sets_of(point.group, point.cls, point.member, point.score.variant); }

std::vector<const planner::Option*> TuneProblem::choices(const planner::Evaluated& point) const {
  const planner::Family& in = family(point);
  std::vector<const planner::Option*> all = in.work.choices(groups_[point.group].work);
  for (const auto& more : {in.policy.choices(point.cls), in.order.choices(point.member), space_.allocators.choices(point.score.variant)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// The model's own kernels and activations, which are those of the plainest policy under any other.
ClassBound TuneProblem::group_bound(std::size_t group) const {
  Sets sets = {"/policy=null", "/policy/framework=fsdp1"};
  append(sets, space_.families[groups_[group].family].work.choices(groups_[group].work));
  auto scenario = read(scenario_, sets, 2);
  if (!scenario) return kRefused;
  const std::int64_t micro_batches = std::exchange(scenario->batch.grad_accum, 1);
  const Priced priced = price(*scenario);
  return {false, seconds(planner::model_time(priced.program, priced.inputs.prices) * micro_batches), planner::least_activations(priced.program)};
}

ClassBound TuneProblem::bound(std::size_t group, std::size_t cls) const {
  const auto scenario = read(scenario_, sets_of(group, cls, 0, 0), 2);
  if (!scenario || (scenario->policy.no_sync && scenario->batch.grad_accum == 1)) return kRefused;  // without accumulation no_sync changes nothing
  const Bounded bounded = bounds_of(*scenario);
  return {false, seconds(planner::least_time(bounded.work)), bounded.memory};
}

/// With the allocator's first settings; with the others only where those retry or run out of memory: where they don't, no other can save anything in the step.
Score TuneProblem::evaluate(std::size_t group, std::size_t cls, std::size_t order, double time_to_beat) const {
  Score best;
  std::size_t simulations = 0;
  for (std::size_t allocator = 0; allocator < space_.allocators.size(); ++allocator) {
    const auto scenario = read(scenario_, sets_of(group, cls, order, allocator), kPricedSteps);
    if (!scenario) return best;
    bool retries = false;
    Score score;
    if (scenario->batch.grad_accum > kSimulated) {
      score = extended(*scenario, retries);
    } else {
      Priced priced = price(*scenario);
      score.outcome = planner::least_memory(priced.program) > memory_limit_                                   ? Score::Outcome::out_of_memory
                      : seconds(planner::critical_path(priced.program, priced.inputs.prices)) >= time_to_beat ? Score::Outcome::slower
                                                                                                              : Score::Outcome::ok;
      if (score.outcome != Score::Outcome::ok) return simulations == 0 ? score : best;
      score = simulated(priced, retries);
    }
    score.variant = allocator;
    score.simulations = ++simulations;
    if (allocator == 0 || score.time_s < best.time_s) best = score;
    best.simulations = simulations;
    if (score.outcome == Score::Outcome::ok && !retries) break;
  }
  return best;
}

planner::Problem TuneProblem::problem() const {
  planner::Problem problem;
  for (const Group& group : groups_) {
    const planner::Family& family = space_.families[group.family];
    problem.groups.emplace_back(family.policy.size(), planner::Problem::Class{family.order.size(), family.typical});
  }
  problem.memory_limit = memory_limit_;
  problem.group_bound = [this](std::size_t g) { return group_bound(g); };
  problem.bound = [this](std::size_t g, std::size_t c) { return bound(g, c); };
  problem.evaluate = [this](std::size_t g, std::size_t c, std::size_t m, double beat) { return evaluate(g, c, m, beat); };
  return problem;
}

}  // namespace stepcast::cli
