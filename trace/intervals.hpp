// Sets of time in picoseconds. Every share of a step is measured on such sets, so overlapping slices never count twice.
// Definitions: docs/breakdown.md section 1. Test: tests/unit/intervals_test.cpp.
#pragma once

#include "hw_models/sim_time.hpp"
#include "trace/interval_sets.hpp"

namespace stepcast::trace {

using Interval = BasicInterval<SimTime>;
using Intervals = BasicIntervals<SimTime>;

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
