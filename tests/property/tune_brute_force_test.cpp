// The search of `tune` against trying every point of a large space. It takes minutes of processor time and is run by hand: test_tune -tc="*every point*" --no-skip. docs/tune.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <thread>

#include "cli/tune/problem.hpp"
#include "cli/validate/parallel.hpp"

using namespace stepcast;

namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// Every group, class and order of calls, none left out for its bound.
planner::Score best_of_all(const planner::Problem& search, unsigned threads, std::size_t& simulations) {
  planner::Score best;
  std::mutex mutex;  // guards best and simulations
  std::vector<std::pair<std::size_t, std::size_t>> classes;
  for (std::size_t g = 0; g < search.groups.size(); ++g) {
    for (std::size_t c = 0; c < search.groups[g].size(); ++c) classes.emplace_back(g, c);
  }
  cli::for_each_index(classes.size(), threads, [&](std::size_t i) {
    const auto [group, cls] = classes[i];
    for (std::size_t member = 0; member < search.groups[group][cls].members; ++member) {
      const planner::Score score = search.evaluate(group, cls, member, kNoBound);
      const std::scoped_lock lock(mutex);
      simulations += score.simulations;
      if (score.outcome == planner::Score::Outcome::ok && score.time_s < best.time_s) best = score;
    }
  });
  return best;
}

}  // namespace

TEST_CASE("7B on 32 A100: the best that tune finds is the best of every point of 207,360" * doctest::skip()) {
  const scenarios::ScenarioTemplate scenario("7b-32xa100");
  const scenarios::Scenario base = scenario.with({});
  planner::SpaceSettings settings;
  settings.fixed = {"/policy/framework", "/kernels/loss", "/kernels/attention"};
  const cli::TuneProblem problem(scenario, base, planner::space_of(base, settings));
  CHECK(problem.space().points() == 207360);
  const planner::Problem search = problem.problem();
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  planner::SearchOptions options;
  options.for_each = [&](std::size_t count, const planner::SearchOptions::Work& work) { cli::for_each_index(count, threads, work); };
  const planner::Found found = planner::search(search, options);
  REQUIRE(found.any());
  std::size_t simulations = 0;
  const planner::Score best = best_of_all(search, threads, simulations);
  MESSAGE("tune: " << found.evaluated.front().score.time_s << " s after " << found.simulations << " simulations; every point: " << best.time_s << " s after "
                   << simulations);
  CHECK(found.evaluated.front().score.time_s == best.time_s);
}
