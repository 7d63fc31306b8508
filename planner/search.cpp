// See search.hpp.
#include "planner/search.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace stepcast::planner {
namespace {

/// Points that are evaluated before the best is looked at again: a constant, so that the result does not depend on the number of threads.
constexpr std::size_t kWave = 16;

struct Place {
  std::size_t group = 0, cls = 0, member = 0;
  auto operator<=>(const Place&) const = default;
};

class Search {
 public:
  Search(const Problem& problem, const SearchOptions& options)
      : problem_(problem), options_(options), groups_(problem.groups.size()), classes_(problem.groups.size()) {}

  Found run() {
    options_.for_each(groups_.size(), [this](std::size_t g) { groups_[g] = problem_.group_bound(g); });
    std::vector<std::size_t> order(groups_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) { return groups_[a].time_s < groups_[b].time_s; });
    for (const std::size_t g : order) {
      if (open(g)) enter(g);
    }
    other_members();
    finish();
    return std::move(found_);
  }

 private:
  [[nodiscard]] double to_beat() const { return best_ * (1 - options_.tolerance); }
  [[nodiscard]] bool full() const { return options_.simulations > 0 && found_.simulations >= options_.simulations; }
  [[nodiscard]] bool open(const ClassBound& bound) const { return !bound.refused && bound.memory <= problem_.memory_limit && bound.time_s < to_beat(); }
  [[nodiscard]] bool open(std::size_t g) const { return open(groups_[g]) && !full(); }

  /// Bounds of all classes of a group, and the typical member of each that is worth it, lowest bounds first.
  void enter(std::size_t g) {
    std::vector<ClassBound>& bounds = classes_[g];
    bounds.resize(problem_.groups[g].size());
    options_.for_each(bounds.size(), [&](std::size_t c) { bounds[c] = problem_.bound(g, c); });
    std::vector<std::size_t> order(bounds.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bounds[a].time_s < bounds[b].time_s; });
    std::vector<Place> places;
    for (const std::size_t c : order) places.push_back({g, c, problem_.groups[g][c].typical});
    evaluate(places);
    if (options_.progress) options_.progress(found_.simulations);
  }

  /// The rest of the classes that are still worth it, those with the fastest typical member first.
  void other_members() {
    std::vector<std::pair<double, Place>> order;
    for (const Evaluated& one : found_.evaluated) order.emplace_back(one.score.time_s, Place{one.group, one.cls, one.member});
    std::sort(order.begin(), order.end());
    std::vector<Place> places;
    for (const auto& [time, place] : order) {
      const Problem::Class& cls = problem_.groups[place.group][place.cls];
      for (std::size_t member = 0; member < cls.members; ++member) {
        if (member != cls.typical) places.push_back({place.group, place.cls, member});
      }
    }
    evaluate(places);
  }

  void evaluate(const std::vector<Place>& places) {
    for (std::size_t next = 0; next < places.size();) {
      std::vector<Place> wave;
      for (; next < places.size() && wave.size() < kWave; ++next) {
        if (full()) return;
        if (open(classes_[places[next].group][places[next].cls])) wave.push_back(places[next]);
      }
      std::vector<Score> scores(wave.size());
      const double beat = to_beat();
      options_.for_each(wave.size(), [&](std::size_t i) { scores[i] = problem_.evaluate(wave[i].group, wave[i].cls, wave[i].member, beat); });
      for (std::size_t i = 0; i < wave.size(); ++i) keep(wave[i], scores[i]);
      if (options_.progress && !wave.empty()) options_.progress(found_.simulations);
    }
  }

  void keep(const Place& place, const Score& score) {
    found_.evaluated.push_back({place.group, place.cls, place.member, score});
    found_.simulations += score.simulations;
    if (score.outcome == Score::Outcome::ok) best_ = std::min(best_, score.time_s);
  }

  /// What was not evaluated was left out for its bound, or not reached.
  void leave_out(const ClassBound& bound, std::size_t points) {
    if (bound.refused) found_.refused += points;
    else if (bound.memory > problem_.memory_limit) found_.pruned_by_memory += points;
    else if (bound.time_s >= to_beat()) found_.pruned_by_time += points;
    else found_.not_reached += points;
    if (points > 0 && open(bound)) lowest_ = std::min(lowest_, bound.time_s);
  }

  void count(const Score& score) {
    if (score.outcome == Score::Outcome::refused) ++found_.refused;
    if (score.outcome == Score::Outcome::slower) ++found_.pruned_by_time;
    if (score.outcome == Score::Outcome::out_of_memory && score.simulations == 0) ++found_.pruned_by_memory;
  }

  void finish() {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> seen;
    for (const Evaluated& one : found_.evaluated) {
      ++seen[{one.group, one.cls}];
      count(one.score);
    }
    lowest_ = to_beat();  // what was left out for its bound takes at least this
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (std::size_t c = 0; c < problem_.groups[g].size(); ++c) {
        const std::size_t points = problem_.groups[g][c].members;
        found_.points += points;
        const auto found = seen.find({g, c});
        leave_out(classes_[g].empty() ? groups_[g] : classes_[g][c], points - (found == seen.end() ? 0 : found->second));
      }
    }
    if (best_ < std::numeric_limits<double>::infinity()) found_.gap = 1 - lowest_ / best_;
    std::sort(found_.evaluated.begin(), found_.evaluated.end(), [](const Evaluated& a, const Evaluated& b) {
      return std::tie(a.score.time_s, a.group, a.cls, a.member) < std::tie(b.score.time_s, b.group, b.cls, b.member);
    });
  }

  const Problem& problem_;
  const SearchOptions& options_;
  std::vector<ClassBound> groups_;
  std::vector<std::vector<ClassBound>> classes_;  // empty: the group was not entered
  double best_ = std::numeric_limits<double>::infinity(), lowest_ = 0;
  Found found_;
};

}  // namespace

Found search(const Problem& problem, const SearchOptions& options) { return Search(problem, options).run(); }

}  // namespace stepcast::planner
