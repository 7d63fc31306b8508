// Test: tests/unit/profile_ranks_test.cpp.
#include "trace/profile/across_ranks.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

// Collectives end on all ranks within some tens of microseconds; clocks that differ by more than this are no clocks of one machine.
constexpr Time kClocksDiffer = std::chrono::milliseconds(1);

/// The middle one, of an even number the upper.
Time median(std::vector<Time> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Element `i` of the matched ones of one rank.
struct Matching {
  std::size_t matched = 0;
  bool from_end = false;
  std::vector<const Spans*> spans;  // by rank
  [[nodiscard]] const Span& at(std::size_t rank, std::size_t i) const { return (*spans[rank])[from_end ? spans[rank]->size() - matched + i : i]; }
};

Matching match(const std::vector<RankSummary>& ranks, const std::string& type) {
  Matching m;
  m.matched = SIZE_MAX;
  for (const RankSummary& rank : ranks) {
    const auto at = rank.collectives.find(type);
    if (at == rank.collectives.end()) return {};
    m.spans.push_back(&at->second);
    m.from_end = m.from_end || at->second.size() != m.spans.front()->size();
    m.matched = std::min(m.matched, at->second.size());
  }
  return m;
}

std::set<std::string> types_of(const std::vector<RankSummary>& ranks) {
  std::set<std::string> types;
  for (const RankSummary& rank : ranks) {
    for (const auto& [type, spans] : rank.collectives) types.insert(type);
  }
  return types;
}

/// How far each rank's clock is ahead of the median rank's, by the ends of collectives.
std::vector<Time> offsets_of(const std::vector<RankSummary>& ranks) {
  std::vector<std::vector<Time>> ahead(ranks.size());
  for (const std::string& type : types_of(ranks)) {
    const Matching m = match(ranks, type);
    for (std::size_t i = 0; i < m.matched && !m.spans.empty(); ++i) {
      std::vector<Time> ends;
      for (std::size_t r = 0; r < ranks.size(); ++r) ends.push_back(m.at(r, i).end);
      const Time middle = median(ends);
      for (std::size_t r = 0; r < ranks.size(); ++r) ahead[r].push_back(ends[r] - middle);
    }
  }
  std::vector<Time> offsets;
  for (auto& list : ahead) offsets.push_back(median(std::move(list)));
  return offsets;
}

void align(std::vector<RankSummary>& ranks, AcrossRanks& out) {
  const std::vector<Time> offsets = offsets_of(ranks);
  const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
  if (offsets.empty() || *high - *low <= kClocksDiffer) return;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    out.clock_offsets[ranks[r].rank] = offsets[r];
    for (Step& step : ranks[r].steps) step.time = {step.time.begin - offsets[r], step.time.end - offsets[r]};
    for (auto& [type, spans] : ranks[r].collectives) {
      for (Span& span : spans) span = {span.begin - offsets[r], span.end - offsets[r]};
    }
  }
}

MatchedCollectives compare(const std::vector<RankSummary>& ranks, const Matching& m) {
  MatchedCollectives out;
  out.matched = static_cast<std::int64_t>(m.matched);
  out.from_end = m.from_end;
  std::vector<Time> start_skews, end_skews;
  for (std::size_t i = 0; i < m.matched; ++i) {
    Span first = m.at(0, i), last = first;
    Time transfer = first.end - first.begin;
    std::size_t late = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const Span& span = m.at(r, i);
      if (span.begin >= last.begin) late = r;  // of several, the highest rank
      first = {std::min(first.begin, span.begin), std::min(first.end, span.end)};
      last = {std::max(last.begin, span.begin), std::max(last.end, span.end)};
      transfer = std::min(transfer, span.end - span.begin);
    }
    start_skews.push_back(last.begin - first.begin);
    end_skews.push_back(last.end - first.end);
    out.transfer += transfer;
    ++out.ranks[ranks[late].rank].last_to_arrive;
    for (std::size_t r = 0; r < ranks.size(); ++r) out.ranks[ranks[r].rank].wait += m.at(r, i).end - m.at(r, i).begin - transfer;
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    RankInCollective& rank = out.ranks[ranks[r].rank];
    rank.count = static_cast<std::int64_t>(m.spans[r]->size());
    for (const Span& span : *m.spans[r]) rank.duration += span.end - span.begin;
  }
  const Distribution starts = distribution(std::move(start_skews)), ends = distribution(std::move(end_skews));
  out.start_skew_p50 = starts.p50;
  out.start_skew_max = starts.max;
  out.end_skew_p50 = ends.p50;
  out.end_skew_max = ends.max;
  out.least_waiting_rank =
      std::min_element(out.ranks.begin(), out.ranks.end(), [](const auto& a, const auto& b) { return a.second.wait < b.second.wait; })->first;
  return out;
}

double max_over_median(const std::map<std::int64_t, Time>& durations) {
  std::vector<Time> times;
  for (const auto& [rank, time] : durations) times.push_back(time);
  const Time most = *std::max_element(times.begin(), times.end()), middle = median(std::move(times));
  return middle > Time{} ? microseconds(most) / microseconds(middle) : 1;
}

/// How much later than rank `r` the last one began, for all collectives of that rank.
std::vector<Time> lateness_of(const Matching& m, std::size_t r) {
  std::vector<Time> late(m.spans[r]->size());
  const std::size_t first = m.from_end ? late.size() - m.matched : 0;
  for (std::size_t i = 0; i < m.matched; ++i) {
    for (std::size_t other = 0; other < m.spans.size(); ++other) late[first + i] = std::max(late[first + i], m.at(other, i).begin - m.at(r, i).begin);
  }
  return late;
}

std::vector<StepAcrossRanks> compare_steps(const std::vector<RankSummary>& ranks) {
  std::vector<StepAcrossRanks> out;
  for (const Step& step : ranks.front().steps) {
    StepAcrossRanks row;
    row.step = step.name;
    Span starts{step.time.begin, step.time.begin};
    for (const RankSummary& rank : ranks) {
      const auto at = std::find_if(rank.steps.begin(), rank.steps.end(), [&](const Step& other) { return other.name == step.name; });
      if (at == rank.steps.end()) break;
      row.durations[rank.rank] = at->time.end - at->time.begin;
      starts = {std::min(starts.begin, at->time.begin), std::max(starts.end, at->time.begin)};
    }
    if (row.durations.size() != ranks.size()) continue;
    row.start_skew = starts.end - starts.begin;
    row.slowest = std::max_element(row.durations.begin(), row.durations.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->first;
    row.max_over_median = max_over_median(row.durations);
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

std::vector<RankSummary> summaries_of(const Profile& profile, std::int64_t position) {
  const Time base(profile.header.base_time_ns.value_or(0));
  std::map<std::uint32_t, RankSummary> devices;
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind != DeviceKind::communication) continue;
    devices[profile.streams[op.stream].device].collectives[std::string(collective_type(profile.names[op.name]))].push_back({op.begin + base, op.end + base});
  }
  if (devices.empty()) devices[0] = {};
  if (devices.size() == 1) {
    for (const Step& step : steps_of(profile)) devices.begin()->second.steps.push_back({step.name, {step.time.begin + base, step.time.end + base}});
  }
  std::vector<RankSummary> summaries;
  for (auto& [device, summary] : devices) {
    summary.device = device;
    summary.rank = profile.header.rank.value_or(position) + static_cast<std::int64_t>(summaries.size());
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

std::map<std::string, Time> own_time_of(const DeviceMetrics& device) {
  std::map<std::string, Time> spent = {{"compute", device.whole_window.compute}};
  for (const auto& [cause, sum] : device.finer.by_cause) {
    if (is_own_doing(cause)) spent[cause] = sum.total;
  }
  return spent;
}

std::vector<std::pair<std::string, Time>> excess_of(const AcrossRanks& across, std::int64_t rank) {
  std::vector<std::pair<std::string, Time>> excess;
  const auto own = across.spent.find(rank);
  if (own == across.spent.end()) return excess;
  for (const auto& [what, time] : own->second) {
    std::vector<Time> others;
    for (const auto& [other, spent] : across.spent) {
      const auto same = spent.find(what);
      if (other != rank) others.push_back(same == spent.end() ? Time{} : same->second);
    }
    const Time more = time - median(std::move(others));
    if (more > Time{}) excess.emplace_back(what, more);
  }
  std::stable_sort(excess.begin(), excess.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return excess;
}

AcrossRanks compare_ranks(std::vector<RankSummary> ranks) {
  AcrossRanks out;
  // Two files may claim the same rank: then their places in the list tell them apart.
  std::set<std::int64_t> numbers;
  for (const RankSummary& rank : ranks) numbers.insert(rank.rank);
  if (numbers.size() != ranks.size()) {
    for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r].rank = static_cast<std::int64_t>(r);
  }
  std::vector<std::size_t> given(ranks.size());  // place of each in the order given
  std::iota(given.begin(), given.end(), std::size_t{0});
  std::sort(given.begin(), given.end(), [&](std::size_t a, std::size_t b) { return ranks[a].rank < ranks[b].rank; });
  std::sort(ranks.begin(), ranks.end(), [](const RankSummary& a, const RankSummary& b) { return a.rank < b.rank; });
  for (const RankSummary& rank : ranks) {
    out.ranks.push_back(rank.rank);
    if (!rank.spent.empty()) out.spent[rank.rank] = rank.spent;
  }
  if (ranks.size() < 2) return out;
  align(ranks, out);
  out.lateness.resize(ranks.size());
  for (const std::string& type : types_of(ranks)) {
    const Matching m = match(ranks, type);
    if (m.spans.empty()) continue;
    out.collectives.emplace(type, compare(ranks, m));
    for (std::size_t r = 0; r < ranks.size(); ++r) out.lateness[given[r]].emplace(type, lateness_of(m, r));
  }
  out.steps = compare_steps(ranks);
  return out;
}

}  // namespace stepcast::trace::profile
