// The sets of trace/interval_sets.hpp for picoseconds, compiled once. Test: tests/unit/intervals_test.cpp.
#include "trace/intervals.hpp"

#include <utility>

namespace stepcast::trace {

Intervals merge(std::vector<Interval> intervals) { return interval_sets::merge(std::move(intervals)); }

Intervals unite(const Intervals& a, const Intervals& b) { return interval_sets::unite(a, b); }

Intervals intersect(const Intervals& a, const Intervals& b) {
  Intervals out;
  interval_sets::sweep_common(a, b, [&](const Interval& both) { out.push_back(both); });
  return out;
}

Intervals subtract(const Intervals& a, const Intervals& b) { return interval_sets::subtract(a, b); }

SimTime length(const Intervals& intervals) { return interval_sets::length(intervals); }

SimTime overlap(const Intervals& a, const Intervals& b) { return interval_sets::overlap(a, b); }

}  // namespace stepcast::trace
