// See run.hpp.
#include "cli/tune/run.hpp"

#include <algorithm>
#include <set>

#include "cli/predict.hpp"
#include "cli/tune/settings.hpp"
#include "cli/validate/parallel.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"

namespace stepcast::cli {
namespace {

using planner::Evaluated, planner::Score;

constexpr std::size_t kBest = 5, kLeaders = 8, kFront = 12;

void refuse_what_cannot_be_tuned(const scenarios::Scenario& base) {
  if (base.fixed_costs) throw InputError(base.name, "/fixed_costs", "fixed costs don't depend on what is tuned");
  if (base.run.ranks != scenarios::Ranks::folded) throw InputError(base.name, "/run/ranks", "tune searches with one rank for all", "use \"folded\"");
  if (scenarios::steps_vary(base))
    throw InputError(base.name, "/host/gc_period", "steps that differ can't be bounded", "leave jitter and garbage collection out");
}

std::string words_of(const TuneProblem& problem, const Evaluated& one) {
  std::string words = problem.family(one).framework;
  for (const planner::Option* choice : problem.choices(one)) words += ", " + choice->words;
  return words;
}

/// The report of the scenario as the user would run it, not of the search's shorter run.
TunePoint point_of(const TuneProblem& problem, const Evaluated& one) {
  const Report report = whole_step(problem.scenario().with(problem.sets(one)));
  return {words_of(problem, one),
          problem.sets(one),
          report.step_time_s,
          report.tokens_per_s_per_gpu,
          report.mfu,
          report.peak_reserved_bytes,
          report.memory_limit_bytes - report.peak_reserved_bytes};
}

/// Points of one time and peak, which differ in what does not matter, count once.
std::vector<Evaluated> distinct(const std::vector<Evaluated>& evaluated, std::size_t most) {
  std::vector<Evaluated> chosen;
  std::set<std::pair<double, std::int64_t>> seen;
  for (const Evaluated& one : evaluated) {
    if (one.score.outcome != Score::Outcome::ok || chosen.size() == most) break;
    if (seen.insert({one.score.time_s, one.score.peak_bytes}).second) chosen.push_back(one);
  }
  return chosen;
}

/// Those that no other beats in both time and headroom.
std::vector<Evaluated> front_of(const std::vector<Evaluated>& evaluated) {
  std::vector<Evaluated> front;
  for (const Evaluated& one : evaluated) {
    if (one.score.outcome != Score::Outcome::ok) break;
    if (front.empty() || one.score.peak_bytes < front.back().score.peak_bytes) front.push_back(one);
  }
  if (front.size() <= kFront) return front;
  std::vector<Evaluated> thinned;
  for (std::size_t i = 0; i < kFront; ++i) thinned.push_back(front[i * (front.size() - 1) / (kFront - 1)]);
  return thinned;
}

std::vector<TunePoint> points_of(const TuneProblem& problem, const std::vector<Evaluated>& chosen, unsigned threads) {
  std::vector<TunePoint> points(chosen.size());
  for_each_index(chosen.size(), threads, [&](std::size_t i) { points[i] = point_of(problem, chosen[i]); });
  return points;
}

/// Counts of the search are of orders of calls; each stands for all settings of the allocator.
void fill_counts(const planner::Found& found, const planner::Space& space, TuneResult& result) {
  const std::size_t each = space.allocators.size();
  result.points = found.points * each;
  result.refused = found.refused * each;
  result.pruned_by_memory = found.pruned_by_memory * each;
  result.pruned_by_time = found.pruned_by_time * each;
  result.not_reached = found.not_reached * each;
  result.evaluated = found.simulations;
  result.gap = found.gap;
}

TuneProblem problem_of(const scenarios::ScenarioTemplate& scenario, planner::SpaceSettings space) {
  const scenarios::Scenario base = scenario.with({});
  refuse_what_cannot_be_tuned(base);
  space.flash3 = scenarios::gpu(base).constants.contains("attention_flash3_rate_128");
  return {scenario, base, planner::space_of(base, space)};
}

planner::Found search_in(const TuneProblem& problem, const TuneSettings& settings) {
  planner::SearchOptions options;
  options.tolerance = settings.tolerance;
  options.simulations = settings.simulations;
  options.for_each = [&](std::size_t count, const planner::SearchOptions::Work& work) { for_each_index(count, settings.threads, work); };
  options.progress = settings.progress;
  return planner::search(problem.problem(), options);
}

}  // namespace

std::optional<TunePoint> fastest(const scenarios::ScenarioTemplate& scenario, const TuneSettings& settings) {
  const TuneProblem problem = problem_of(scenario, settings.space);
  const planner::Found found = search_in(problem, settings);
  if (!found.any()) return std::nullopt;
  return point_of(problem, found.evaluated.front());
}

TuneResult tuned(const scenarios::ScenarioTemplate& scenario, const TuneSettings& settings) {
  const TuneProblem problem = problem_of(scenario, settings.space);
  const planner::Found found = search_in(problem, settings);
  TuneResult result;
  result.scenario = scenario.with({}).name;
  fill_counts(found, problem.space(), result);
  if (!found.any()) return result;
  const Evaluated& winner = found.evaluated.front();
  result.best = points_of(problem, distinct(found.evaluated, kBest), settings.threads);
  result.front = points_of(problem, front_of(found.evaluated), settings.threads);
  result.decisions = decide(problem, winner, settings.threads);
  result.elasticities = elasticities(problem, winner, result.best.front().step_time_s);
  result.robustness = robustness(problem, distinct(found.evaluated, kLeaders), settings.threads);
  result.settings = settings_to_paste(scenario.with(problem.sets(winner)));
  return result;
}

}  // namespace stepcast::cli
