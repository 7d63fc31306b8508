// The fastest of many points, by asking for the exact time of as few as possible. Points are put into classes that share a lower bound, and classes into groups that share a
// looser one. Groups are taken in the order of their bounds; what can't be better than the best known by more than a tolerance is left out. docs/tune.md; test: tests/unit/search_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace stepcast::planner {

/// Of all points of a class. A class that is refused, or the same as another one, has none.
struct ClassBound {
  bool refused = false;
  double time_s = 0;        // no point of it takes less
  std::int64_t memory = 0;  // bytes; no point of it allocates less at once
};

struct Score {
  /// slower: a bound of the point's own says that it takes at least the time to beat. Nothing was simulated; nor was it for one that can't fit, or is refused.
  enum class Outcome : std::uint8_t { ok, out_of_memory, deadlock, refused, slower };
  Outcome outcome = Outcome::refused;
  double time_s = std::numeric_limits<double>::infinity();  // only if ok
  std::int64_t peak_bytes = 0;
  std::size_t simulations = 0;  // that it took
  std::size_t variant = 0;      // for the caller, e.g. which of several settings gave this
};

/// What is searched. The functions are called by SearchOptions::for_each.
struct Problem {
  struct Class {
    std::size_t members = 1;  // points
    std::size_t typical = 0;  // the member to begin with
  };
  std::vector<std::vector<Class>> groups;
  std::int64_t memory_limit = 0;                                        // bytes
  std::function<ClassBound(std::size_t group)> group_bound;             // cheap; refused: every class is
  std::function<ClassBound(std::size_t group, std::size_t cls)> bound;  // of one class
  std::function<Score(std::size_t group, std::size_t cls, std::size_t member, double time_to_beat)> evaluate;
};

struct SearchOptions {
  double tolerance = 0;                                     // points are left out that are better than the best by less than this share of its time
  std::size_t simulations = 0;                              // about as many at most; 0: no limit
  std::function<void(std::size_t simulations)> progress{};  // with the simulations so far
  /// Calls work(0) to work(count - 1), in any order or at the same time.
  using Work = std::function<void(std::size_t)>;
  std::function<void(std::size_t count, const Work& work)> for_each = [](std::size_t count, const Work& work) {
    for (std::size_t i = 0; i < count; ++i) work(i);
  };
};

struct Evaluated {
  std::size_t group = 0, cls = 0, member = 0;
  Score score;
};

/// Counts are of points, but for `simulations`.
struct Found {
  std::vector<Evaluated> evaluated;  // fastest first, then by place
  std::size_t points = 0, refused = 0, pruned_by_memory = 0, pruned_by_time = 0, not_reached = 0, simulations = 0;
  double gap = 0;  // the best can be improved by no more than this share of its time
  [[nodiscard]] bool any() const { return !evaluated.empty() && evaluated.front().score.outcome == Score::Outcome::ok; }
};

/// The same result whatever the order in which for_each works.
Found search(const Problem& problem, const SearchOptions& options);

}  // namespace stepcast::planner
