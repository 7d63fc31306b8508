// Linear sweeps over sorted intervals. Definitions: docs/breakdown.md section 1. Test: tests/unit/intervals_test.cpp.
#include "trace/intervals.hpp"

#include <algorithm>

namespace stepcast::trace {

namespace {

bool ordered_by_end(const std::vector<Interval>& intervals) {
  return std::is_sorted(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.end < b.end; });
}

void append(Intervals& out, Interval next) {
  if (!out.empty() && out.back().end >= next.begin) out.back().end = std::max(out.back().end, next.end);
  else out.push_back(next);
}

/// Calls `each` with every piece common to both.
template <class Each>
void sweep_common(const Intervals& a, const Intervals& b, Each each) {
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    const Interval both{std::max(x->begin, y->begin), std::min(x->end, y->end)};
    if (both.begin < both.end) each(both);
    if (x->end < y->end) ++x;
    else ++y;
  }
}

}  // namespace

Intervals merge(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& interval) { return interval.begin >= interval.end; });
  if (!ordered_by_end(intervals)) std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.end < b.end; });
  // From the last end backwards the begins decide alone; the merged set grows from the back of the same vector.
  std::size_t to = intervals.size();
  for (std::size_t from = intervals.size(); from-- > 0;) {
    const Interval next = intervals[from];
    if (to < intervals.size() && next.end >= intervals[to].begin) intervals[to].begin = std::min(intervals[to].begin, next.begin);
    else intervals[--to] = next;
  }
  intervals.erase(intervals.begin(), intervals.begin() + static_cast<std::ptrdiff_t>(to));
  return intervals;
}

Intervals unite(const Intervals& a, const Intervals& b) {
  Intervals out;
  out.reserve(a.size() + b.size());
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() || y != b.end()) {
    const bool first = y == b.end() || (x != a.end() && x->begin < y->begin);
    append(out, first ? *x++ : *y++);
  }
  return out;
}

Intervals intersect(const Intervals& a, const Intervals& b) {
  Intervals out;
  sweep_common(a, b, [&](const Interval& both) { out.push_back(both); });
  return out;
}

Intervals subtract(const Intervals& a, const Intervals& b) {
  Intervals out;
  auto hole = b.begin();
  for (const Interval& interval : a) {
    SimTime from = interval.begin;
    while (hole != b.end() && hole->end <= from) ++hole;
    for (auto inside = hole; inside != b.end() && inside->begin < interval.end; ++inside) {
      if (from < inside->begin) out.push_back({from, inside->begin});
      from = std::max(from, inside->end);
    }
    if (from < interval.end) out.push_back({from, interval.end});
  }
  return out;
}

SimTime length(const Intervals& intervals) {
  SimTime total{};
  for (const Interval& interval : intervals) total += interval.end - interval.begin;
  return total;
}

SimTime overlap(const Intervals& a, const Intervals& b) {
  SimTime total{};
  sweep_common(a, b, [&](const Interval& both) { total += both.end - both.begin; });
  return total;
}

}  // namespace stepcast::trace
