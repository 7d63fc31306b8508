// One pass over a rank's slices. Definitions: docs/breakdown.md sections 1 and 3. Test: tests/unit/breakdown_test.cpp.
#include "trace/step_view.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace stepcast::trace {

namespace {

// A start later than this after its launch says nothing about the launch latency: the stream was waiting for something. Launch latencies lie at 3 to 10 us.
constexpr SimTime kLongestLatency = std::chrono::microseconds(20);

bool touches(const Slice& slice, const Interval& window) { return slice.begin < window.end && slice.end > window.begin; }
bool on_device(const Slice& slice) { return slice.category == Category::kernel || slice.category == Category::collective; }
bool ends_before(const Slice* a, const Slice* b) { return a->end < b->end; }
bool begins_before(const Slice* a, const Slice* b) { return a->begin < b->begin; }

template <class Less>
void sort_if_needed(std::vector<const Slice*>& slices, Less less) {
  if (!std::is_sorted(slices.begin(), slices.end(), less)) std::stable_sort(slices.begin(), slices.end(), less);
}

Interval clipped(const Slice& slice, const Interval& window) { return {std::max(slice.begin, window.begin), std::min(slice.end, window.end)}; }

}  // namespace

bool blocks_host(const Slice& slice) { return slice.category == Category::host_wait || (!on_device(slice) && slice.host_state != HostState::working); }

void Launches::finish() {
  // Of several calls with one number the driver's call wins: an op around it ends later.
  const auto less = [](const Slice* a, const Slice* b) {
    return std::pair(a->correlation, a->category != Category::host_runtime) < std::pair(b->correlation, b->category != Category::host_runtime);
  };
  sort_if_needed(calls_, less);
}

const Slice* Launches::find(const Slice& work) const {
  if (work.correlation == 0) return nullptr;
  const auto at = std::lower_bound(calls_.begin(), calls_.end(), work.correlation, [](const Slice* call, std::uint32_t id) { return call->correlation < id; });
  return at != calls_.end() && (*at)->correlation == work.correlation ? *at : nullptr;
}

StepView::StepView(const Trace& trace, const RankTrace& rank, Interval step_window) : window(step_window) {
  sort_out(trace, rank);
  order();
  measure_latency();
}

void StepView::sort_out(const Trace& trace, const RankTrace& rank) {
  std::vector<Interval> kernel_times, blocked_times, data_times;
  std::array<std::vector<Interval>, kCollectiveKinds> kind_times;
  const Slice* following = nullptr;  // the first compute kernel after the window ends the gap at the window's end
  for (const Slice& slice : rank.slices) {
    const bool here = touches(slice, window);
    if (slice.category == Category::kernel) {
      const bool copies = slice.lane != kComputeLane && hw::is_host_copy(trace.kernels.at(slice.detail).shape.kind);  // beside compute, by a copy engine
      if (here && !copies) kernel_times.push_back(clipped(slice, window)), kernels_here.push_back(&slice);
      if (slice.lane != kComputeLane) elsewhere.push_back(&slice);
      else if (here) compute_lane.push_back(&slice);
      else if (slice.begin >= window.end && (!following || slice.begin < following->begin)) following = &slice;
    } else if (slice.category == Category::collective) {
      if (here) kind_times.at(static_cast<std::size_t>(trace.collectives.at(slice.detail).shape.kind)).push_back(clipped(slice, window));
      elsewhere.push_back(&slice);
    } else {
      if (slice.correlation != 0) launches.add(slice);
      if (!blocks_host(slice)) continue;
      host_blocks.push_back(&slice);
      if (here) blocked_times.push_back(clipped(slice, window));
      if (here && slice.host_state == HostState::data_loader) data_times.push_back(clipped(slice, window));
    }
  }
  if (following) compute_lane.push_back(following);
  kernels = merge(std::move(kernel_times));
  blocked = merge(std::move(blocked_times));
  data_wait = merge(std::move(data_times));
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
    by_kind[kind] = merge(std::move(kind_times[kind]));
    collectives = unite(collectives, by_kind[kind]);
  }
}

void StepView::order() {
  launches.finish();
  sort_if_needed(compute_lane, begins_before);
  sort_if_needed(elsewhere, ends_before);
  sort_if_needed(host_blocks, ends_before);
}

/// Lower quartile over the device work that started on an idle lane soon after its launch; only such starts can show the latency.
void StepView::measure_latency() {
  std::vector<SimTime> delays;
  std::map<std::int16_t, SimTime> lane_end;
  const auto look = [&](const Slice& work) {
    SimTime& busy_until = lane_end[work.lane];
    const bool was_idle = work.begin > busy_until;
    busy_until = std::max(busy_until, work.end);
    const Slice* call = was_idle ? launches.find(work) : nullptr;
    if (call && work.begin >= call->end && work.begin - call->end <= kLongestLatency) delays.push_back(work.begin - call->end);
  };
  for (const Slice* work : compute_lane) look(*work);
  for (const Slice* work : elsewhere) {
    if (work->lane != kComputeLane) look(*work);
  }
  if (delays.empty()) return;
  const auto quartile = delays.begin() + static_cast<std::ptrdiff_t>((delays.size() - 1) / 4);
  std::nth_element(delays.begin(), quartile, delays.end());
  launch_latency = *quartile;
}

std::size_t last_ended(std::span<const Slice* const> slices, SimTime time, std::size_t limit) {
  const auto after =
      std::upper_bound(slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(limit), time, [](SimTime t, const Slice* slice) { return t < slice->end; });
  return after == slices.begin() ? limit : static_cast<std::size_t>(after - slices.begin()) - 1;
}

}  // namespace stepcast::trace
