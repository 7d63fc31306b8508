// A kernel of the compute stream and the idle time before it belong to its phase, less what the phase before still did on other streams.
// Rule: docs/breakdown.md section 2. Test: tests/unit/breakdown_test.cpp.
#include "trace/phases.hpp"

#include <algorithm>

namespace stepcast::trace {

namespace {

/// End of the last device work of `phase` that ended in the gap (from, to], or `from`: the last reduce-scatter belongs to the backward, not to the optimizer.
SimTime phase_end(const StepView& view, Phase phase, SimTime from, SimTime to) {
  std::size_t limit = view.elsewhere.size();
  for (std::size_t at = last_ended(view.elsewhere, to, limit); at < limit; at = last_ended(view.elsewhere, to, limit)) {
    const Slice& work = *view.elsewhere[at];
    if (work.end <= from) break;
    if (work.phase == phase) return work.end;
    limit = at;
  }
  return from;
}

}  // namespace

std::array<Intervals, 4> cut_phases(const StepView& view) {
  std::array<std::vector<Interval>, 4> parts;
  SimTime done = view.window.begin;
  const Slice* before = nullptr;
  const auto give = [&](Phase phase, SimTime until) {
    until = std::min(until, view.window.end);
    if (until <= done) return;
    parts.at(static_cast<std::size_t>(phase)).push_back({done, until});
    done = until;
  };
  for (const Slice* kernel : view.compute_lane) {
    if (before && before->phase != kernel->phase && kernel->begin > done) give(before->phase, phase_end(view, before->phase, done, kernel->begin));
    // A kernel after the window ends a gap, but its phase is that of the next step.
    const bool here = kernel->begin < view.window.end;
    give(here || !before ? kernel->phase : before->phase, here ? kernel->end : view.window.end);
    before = kernel;
  }
  give(before ? before->phase : Phase::none, view.window.end);
  std::array<Intervals, 4> out;
  for (std::size_t phase = 0; phase < parts.size(); ++phase) out[phase] = merge(std::move(parts[phase]));
  return out;
}

}  // namespace stepcast::trace
