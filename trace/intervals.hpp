// Sets of time as sorted, disjoint, half-open intervals. Every share of a step is measured on such sets, so overlapping slices never count twice.
// Definitions: docs/breakdown.md section 1. Test: tests/unit/intervals_test.cpp.
#pragma once

#include <vector>

#include "hw_models/sim_time.hpp"

namespace stepcast::trace {

/// [begin, end) in picoseconds.
struct Interval {
  SimTime begin{}, end{};
  bool operator==(const Interval&) const = default;
};

/// Sorted by time, disjoint, none empty, touching ones joined: equal sets of time are equal vectors.
using Intervals = std::vector<Interval>;

/// The union of any intervals; empty and reversed ones count as nothing. Linear where they come ordered by begin or by end, as recorded lanes do.
Intervals merge(std::vector<Interval> intervals);

Intervals unite(const Intervals& a, const Intervals& b);
Intervals intersect(const Intervals& a, const Intervals& b);
/// What is in `a` and not in `b`.
Intervals subtract(const Intervals& a, const Intervals& b);

SimTime length(const Intervals& intervals);
/// length(intersect(a, b)) without building the set.
SimTime overlap(const Intervals& a, const Intervals& b);

}  // namespace stepcast::trace
