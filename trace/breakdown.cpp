// Puts a step's shares together from interval sets, and its gaps from the walk. Definitions: docs/breakdown.md. Test: tests/unit/breakdown_test.cpp.
#include "trace/breakdown.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "trace/gap_walk.hpp"
#include "trace/phases.hpp"
#include "trace/step_view.hpp"

namespace stepcast::trace {

namespace {

Interval window_of(const Trace& trace, int step) {
  if (step < trace.first_recorded_step || static_cast<std::size_t>(step) >= trace.steps.size()) {
    throw std::out_of_range("step " + std::to_string(step) + " was not recorded");
  }
  const auto index = static_cast<std::size_t>(step);
  return {index == 0 ? SimTime{} : trace.steps[index - 1].device_end, trace.steps[index].device_end};
}

/// The sets whose lengths are reported, over the whole window.
struct Shares {
  explicit Shares(const StepView& step) : view(step), exposed(subtract(step.collectives, step.kernels)), busy(unite(step.kernels, exposed)) {}
  const StepView& view;
  Intervals exposed, busy;

  [[nodiscard]] Times within(const Intervals& part) const {
    Times times;
    times.span = length(part);
    times.compute = overlap(view.kernels, part);
    times.collective = overlap(view.collectives, part);
    times.exposed = overlap(exposed, part);
    times.idle = times.span - overlap(busy, part);
    times.host_blocked = overlap(view.blocked, part);
    times.data_wait = overlap(view.data_wait, part);
    return times;
  }
};

/// Time that several kinds leave exposed together counts for the first of them, so that the kinds sum to the exposed time.
std::array<SimTime, 3> split_by_kind(const StepView& view) {
  std::array<SimTime, 3> out{};
  Intervals counted = view.kernels;
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
    out[kind] = length(subtract(view.by_kind[kind], counted));
    counted = unite(counted, view.by_kind[kind]);
  }
  return out;
}

std::vector<Breakdown::KernelTotal> sum_kernels(const Trace& trace, const StepView& view) {
  std::vector<CauseTotal> by_entry(trace.kernels.size());
  for (const Slice* slice : view.kernels_here) {
    CauseTotal& entry = by_entry.at(slice->detail);
    ++entry.count;
    entry.total += std::min(slice->end, view.window.end) - std::max(slice->begin, view.window.begin);
  }
  std::unordered_map<std::string_view, std::size_t> place;
  std::vector<Breakdown::KernelTotal> totals;
  for (std::size_t i = 0; i < by_entry.size(); ++i) {
    if (by_entry[i].count == 0) continue;
    const auto [at, added] = place.try_emplace(trace.kernels[i].name, totals.size());
    if (added) totals.push_back({trace.kernels[i].name, 0, {}});
    totals[at->second].count += by_entry[i].count;
    totals[at->second].total += by_entry[i].total;
  }
  std::sort(totals.begin(), totals.end(), [](const auto& a, const auto& b) { return a.total != b.total ? a.total > b.total : a.name < b.name; });
  return totals;
}

/// Every idle interval of the compute stream in the window, cut by cause.
void find_gaps(const Trace& trace, const StepView& view, Breakdown& out) {
  GapWalk walk(trace, view);
  SimTime busy_until = view.window.begin;
  const auto add = [&](SimTime end, const Slice* next) {
    for (const GapWalk::Piece& piece : walk.explain({busy_until, end}, next)) {
      const SimTime until = std::min(piece.time.end, view.window.end);
      if (piece.time.begin >= until) continue;
      out.gaps.push_back(
          {piece.time.begin, until, piece.cause, next ? trace.kernels.at(next->detail).name : "", next ? next->unit : -1, next ? next->phase : Phase::none});
      CauseTotal& total = out.causes.at(static_cast<std::size_t>(piece.cause));
      ++total.count;
      total.total += until - piece.time.begin;
    }
  };
  for (const Slice* kernel : view.compute_lane) {
    if (busy_until >= view.window.end) break;
    if (kernel->begin > busy_until) add(kernel->begin, kernel);
    busy_until = std::max(busy_until, kernel->end);
  }
  if (busy_until < view.window.end) add(view.window.end, nullptr);
}

}  // namespace

const char* name(GapCause cause) {
  static constexpr const char* names[] = {"all_gather",      "reduce_scatter", "all_reduce",  "other_stream", "launch_bound", "rate_limiter",   "device_malloc",
                                          "allocator_flush", "data_loader",    "synchronize", "launch_queue", "host_pause",   "launch_latency", "unexplained"};
  static_assert(std::size(names) == static_cast<std::size_t>(GapCause::count_));
  return cause < GapCause::count_ ? names[static_cast<std::size_t>(cause)] : "?";
}

Breakdown break_down(const Trace& trace, const RankTrace& rank, int step) {
  const Interval window = window_of(trace, step);
  const StepView view(trace, rank, window);
  const Shares shares(view);
  Breakdown out;
  out.begin = window.begin;
  out.end = window.end;
  out.total = shares.within(merge({window}));
  const auto parts = cut_phases(view);
  for (std::size_t phase = 0; phase < parts.size(); ++phase) out.phases[phase] = shares.within(parts[phase]);
  out.exposed_by_kind = split_by_kind(view);
  out.kernels = sum_kernels(trace, view);
  find_gaps(trace, view, out);
  return out;
}

}  // namespace stepcast::trace
