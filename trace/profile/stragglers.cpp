// What of the waits for collectives was spent waiting for other ranks: the rank's own queue run again without it.
// Tests: tests/unit/profile_finer_causes_test.cpp, tests/model/profile_planted_causes_test.cpp.
#include <algorithm>
#include <optional>

#include "trace/profile/finer_causes.hpp"

namespace stepcast::trace::profile {

namespace {

class WithoutStragglers {
 public:
  WithoutStragglers(FinerCauses& causes, const Lateness& lateness)
      : causes_(causes), lateness_(lateness), ends_(causes.queue.size()), late_types_(causes.queue.size()) {}

  /// Gap by gap, in each the collectives in their order.
  void settle() {
    std::stable_sort(causes_.waits.begin(), causes_.waits.end(), [this](const CollectiveWait& a, const CollectiveWait& b) {
      return std::pair(a.gap.begin, end_of(a)) < std::pair(b.gap.begin, end_of(b));
    });
    for (auto first = causes_.waits.begin(); first != causes_.waits.end();) {
      const Span gap = first->gap;
      Time saved{};
      for (; first != causes_.waits.end() && first->gap.begin == gap.begin; ++first) saved += charge(*first, saved);
      if (saved > Time{}) earlier_.emplace_back(gap.end, (earlier_.empty() ? Time{} : earlier_.back().second) + saved);
    }
  }

 private:
  [[nodiscard]] Time end_of(const CollectiveWait& wait) const { return causes_.queue[wait.collective].time.end; }

  /// By how much the compute stream would have been earlier at this time, as far as gaps have been settled.
  [[nodiscard]] Time earlier(Time time) const {
    const auto later = std::partition_point(earlier_.begin(), earlier_.end(), [time](const auto& gap) { return gap.first <= time; });
    return later == earlier_.begin() ? Time{} : (later - 1)->second;
  }

  [[nodiscard]] Time late(const QueuedCollective& collective) const {
    const auto type = lateness_.find(collective.id.type);
    if (type == lateness_.end() || collective.id.position >= type->second.size()) return {};
    return std::min(type->second[collective.id.position], collective.time.end - collective.time.begin);
  }

  /// When it would have ended; those before it come first.
  Time end_without(std::size_t place) {
    std::vector<std::size_t> open;
    for (std::optional<std::size_t> at = place; at && !ends_[*at]; at = causes_.queue[*at].before) open.push_back(*at);
    for (; !open.empty(); open.pop_back()) {
      const QueuedCollective& c = causes_.queue[open.back()];
      Time begin = c.time.begin - earlier(c.time.begin);
      if (c.before) {
        const Time lag = c.time.begin - causes_.queue[*c.before].time.end;
        begin = std::min(c.time.begin, std::max(c.ready - earlier(c.ready), *ends_[*c.before]) + lag);
      }
      ends_[open.back()] = begin + (c.time.end - c.time.begin - late(c));
      late_types_[open.back()] = late(c) > Time{} || !c.before ? c.id.type : late_types_[*c.before];
    }
    return *ends_[place];
  }

  Time charge(CollectiveWait& wait, Time saved) {
    const QueuedCollective& c = causes_.queue[wait.collective];
    const Time begin = wait.gap.begin, without = std::max(Time{}, end_without(wait.collective) - (begin - earlier(begin)));
    const Time most = c.time.end - begin - without - saved;
    const Time transfer = std::clamp(most, Time{}, wait.transfer), behind = std::clamp(most - transfer, Time{}, wait.behind);
    const std::string_view type = late_types_[wait.collective];
    move(wait.transfer_cause, type, transfer);
    move(std::string(c.id.type) + "_behind_other", type, behind);
    wait.transfer -= transfer;
    wait.behind -= behind;
    return transfer + behind;
  }

  void move(const std::string& from, std::string_view type, Time time) {
    if (time <= Time{}) return;
    CauseSum& to = causes_.by_cause[std::string(type) + "_straggler"];
    causes_.by_cause[from].total -= time;
    to.total += time;
    ++to.count;
  }

  FinerCauses& causes_;
  const Lateness& lateness_;
  std::vector<std::optional<Time>> ends_;       // of the queue, without waiting for others
  std::vector<std::string_view> late_types_;    // of each, whose lateness holds it up: its own, or that of the nearest before it
  std::vector<std::pair<Time, Time>> earlier_;  // end of a gap; by how much the compute stream would have been earlier from there on
};

}  // namespace

void settle_stragglers(FinerCauses& causes, const Lateness& lateness) { WithoutStragglers(causes, lateness).settle(); }

}  // namespace stepcast::trace::profile
