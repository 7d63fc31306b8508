// Sets of time as sorted, disjoint, half-open intervals, for any duration type: linear sweeps over sorted intervals.
// Definitions: docs/breakdown.md section 1. Test: tests/unit/intervals_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stepcast::trace {

/// [begin, end).
template <class Time>
struct BasicInterval {
  Time begin{}, end{};
  bool operator==(const BasicInterval&) const = default;
};

/// Sorted by time, disjoint, none empty, touching ones joined: equal sets of time are equal vectors.
template <class Time>
using BasicIntervals = std::vector<BasicInterval<Time>>;

namespace interval_sets {

/// The union of any intervals; empty and reversed ones count as nothing. Linear where they come ordered by begin or by end, as recorded lanes do.
template <class Time>
BasicIntervals<Time> merge(BasicIntervals<Time> intervals) {
  const auto by_end = [](const BasicInterval<Time>& a, const BasicInterval<Time>& b) { return a.end < b.end; };
  std::erase_if(intervals, [](const BasicInterval<Time>& interval) { return interval.begin >= interval.end; });
  if (!std::is_sorted(intervals.begin(), intervals.end(), by_end)) std::sort(intervals.begin(), intervals.end(), by_end);
  // From the last end backwards the begins decide alone; the merged set grows from the back of the same vector.
  std::size_t to = intervals.size();
  for (std::size_t from = intervals.size(); from-- > 0;) {
    const BasicInterval<Time> next = intervals[from];
    if (to < intervals.size() && next.end >= intervals[to].begin) intervals[to].begin = std::min(intervals[to].begin, next.begin);
    else intervals[--to] = next;
  }
  intervals.erase(intervals.begin(), intervals.begin() + static_cast<std::ptrdiff_t>(to));
  return intervals;
}

template <class Time>
BasicIntervals<Time> unite(const BasicIntervals<Time>& a, const BasicIntervals<Time>& b) {
  BasicIntervals<Time> out;
  out.reserve(a.size() + b.size());
  const auto append = [&out](BasicInterval<Time> next) {
    if (!out.empty() && out.back().end >= next.begin) out.back().end = std::max(out.back().end, next.end);
    else out.push_back(next);
  };
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() || y != b.end()) {
    const bool first = y == b.end() || (x != a.end() && x->begin < y->begin);
    append(first ? *x++ : *y++);
  }
  return out;
}

/// Calls `each` with every piece common to both.
template <class Time, class Each>
void sweep_common(const BasicIntervals<Time>& a, const BasicIntervals<Time>& b, Each each) {
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    const BasicInterval<Time> both{std::max(x->begin, y->begin), std::min(x->end, y->end)};
    if (both.begin < both.end) each(both);
    if (x->end < y->end) ++x;
    else ++y;
  }
}

/// What is in `a` and not in `b`.
template <class Time>
BasicIntervals<Time> subtract(const BasicIntervals<Time>& a, const BasicIntervals<Time>& b) {
  BasicIntervals<Time> out;
  auto hole = b.begin();
  for (const BasicInterval<Time>& interval : a) {
    Time from = interval.begin;
    while (hole != b.end() && hole->end <= from) ++hole;
    for (auto inside = hole; inside != b.end() && inside->begin < interval.end; ++inside) {
      if (from < inside->begin) out.push_back({from, inside->begin});
      from = std::max(from, inside->end);
    }
    if (from < interval.end) out.push_back({from, interval.end});
  }
  return out;
}

template <class Time>
Time length(const BasicIntervals<Time>& intervals) {
  Time total{};
  for (const BasicInterval<Time>& interval : intervals) total += interval.end - interval.begin;
  return total;
}

/// Length of what is in both.
template <class Time>
Time overlap(const BasicIntervals<Time>& a, const BasicIntervals<Time>& b) {
  Time total{};
  sweep_common(a, b, [&](const BasicInterval<Time>& both) { total += both.end - both.begin; });
  return total;
}

}  // namespace interval_sets
}  // namespace stepcast::trace
