// The search against brute force on made-up problems: with true bounds it finds the best, and what it leaves out is counted. docs/tune.md.
#include <doctest/doctest.h>

#include <cstdint>

#include "planner/search.hpp"

using namespace stepcast::planner;

namespace {

/// A number from 0 to 1 that depends on its arguments only.
double noise(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15 + a * 0xbf58476d1ce4e5b9 + b * 0x94d049bb133111eb + c * 0xd6e8feb86659fd93;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

constexpr std::size_t kGroups = 6, kClasses = 5, kMembers = 4;

/// Groups, classes and members add to the time; bounds leave out what lies below them. A third of the classes do not fit.
struct MadeUp {
  std::uint64_t seed = 0;
  [[nodiscard]] double group(std::size_t g) const { return 1 + noise(seed, g); }
  [[nodiscard]] double cls(std::size_t g, std::size_t c) const { return group(g) + noise(seed, g, c + 1); }
  [[nodiscard]] double time(std::size_t g, std::size_t c, std::size_t m) const { return cls(g, c) + 0.3 * noise(seed, g, c + 1, m + 1); }
  [[nodiscard]] std::int64_t memory(std::size_t g, std::size_t c) const { return noise(seed, g, c, 99) < 0.33 ? 200 : 50; }
  [[nodiscard]] double best() const {
    double best = 1e9;
    for (std::size_t g = 0; g < kGroups; ++g) {
      for (std::size_t c = 0; c < kClasses; ++c) {
        for (std::size_t m = 0; m < kMembers && memory(g, c) <= 100; ++m) best = std::min(best, time(g, c, m));
      }
    }
    return best;
  }
  [[nodiscard]] Problem problem() const {
    Problem problem;
    problem.groups.assign(kGroups, std::vector<Problem::Class>(kClasses, {kMembers, 1}));
    problem.memory_limit = 100;
    problem.group_bound = [this](std::size_t g) { return ClassBound{false, group(g), 0}; };
    problem.bound = [this](std::size_t g, std::size_t c) { return ClassBound{false, cls(g, c), memory(g, c)}; };
    problem.evaluate = [this](std::size_t g, std::size_t c, std::size_t m, double) {
      Score score;
      score.outcome = Score::Outcome::ok;
      score.time_s = time(g, c, m);
      score.simulations = 1;
      return score;
    };
    return problem;
  }
};

}  // namespace

TEST_CASE("with bounds that hold, the search finds what brute force finds, and asks for less") {
  std::size_t simulations = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const MadeUp made{seed};
    const Found found = search(made.problem(), {});
    REQUIRE(found.any());
    CHECK(found.evaluated.front().score.time_s == made.best());
    CHECK(found.gap == 0);
    CHECK(found.points == kGroups * kClasses * kMembers);
    CHECK(found.simulations + found.pruned_by_memory + found.pruned_by_time == found.points);
    simulations += found.simulations;
  }
  CHECK(simulations < 50 * kGroups * kClasses * kMembers / 2);
}

TEST_CASE("a tolerance saves work and keeps its promise") {
  std::size_t exact = 0, rough = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const MadeUp made{seed};
    SearchOptions options;
    options.tolerance = 0.05;
    const Found found = search(made.problem(), options);
    CHECK(found.evaluated.front().score.time_s <= made.best() / 0.95);
    CHECK(found.gap == doctest::Approx(0.05));
    rough += found.simulations;
    exact += search(made.problem(), {}).simulations;
  }
  CHECK(rough < exact);
}

TEST_CASE("a limit of simulations ends the search with a gap that holds") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const MadeUp made{seed};
    SearchOptions options;
    options.simulations = 3;
    const Found found = search(made.problem(), options);
    REQUIRE(found.any());
    CHECK(made.best() >= found.evaluated.front().score.time_s * (1 - found.gap) - 1e-12);
    CHECK(found.simulations + found.pruned_by_memory + found.pruned_by_time + found.not_reached == found.points);
  }
}

TEST_CASE("the order of work does not matter") {
  const MadeUp made{7};
  SearchOptions backwards;
  backwards.for_each = [](std::size_t count, const SearchOptions::Work& work) {
    for (std::size_t i = count; i-- > 0;) work(i);
  };
  const Found a = search(made.problem(), {}), b = search(made.problem(), backwards);
  REQUIRE(a.evaluated.size() == b.evaluated.size());
  for (std::size_t i = 0; i < a.evaluated.size(); ++i) CHECK(a.evaluated[i].score.time_s == b.evaluated[i].score.time_s);
}

TEST_CASE("nothing that fits is no result, and refused classes are counted") {
  const MadeUp made{1};
  Problem problem = made.problem();
  problem.memory_limit = 10;
  Found found = search(problem, {});
  CHECK(!found.any());
  CHECK(found.pruned_by_memory == found.points);
  problem.group_bound = [](std::size_t) { return ClassBound{true, 0, 0}; };
  found = search(problem, {});
  CHECK(found.refused == found.points);
}
