// The walk: kernel -> the later of its launch and the device work that released it -> the same question for that, until the gap's begin is reached.
// Rules: docs/breakdown.md section 4. Test: tests/unit/gap_walk_test.cpp.
#include "trace/gap_walk.hpp"

#include <algorithm>
#include <cstddef>

namespace stepcast::trace {

namespace {

// Below this a stretch with nothing to wait for is dispatch time between queued kernels; longer ones stay unexplained.
constexpr SimTime kLongestDispatch = std::chrono::microseconds(10);

// Work that runs now is among the next few to end: there are no more streams than that.
constexpr std::ptrdiff_t kLookahead = 64;

bool waits_for_device(HostState state) { return state == HostState::rate_limiter || state == HostState::synchronize || state == HostState::launch_queue_full; }

GapCause cause_of(HostState state) {
  switch (state) {
    case HostState::working: return GapCause::launch_bound;
    case HostState::rate_limiter: return GapCause::rate_limiter;
    case HostState::synchronize: return GapCause::synchronize;
    case HostState::device_malloc: return GapCause::device_malloc;
    case HostState::allocator_flush: return GapCause::allocator_flush;
    case HostState::data_loader: return GapCause::data_loader;
    case HostState::launch_queue_full: return GapCause::launch_queue;
    case HostState::paused: return GapCause::host_pause;
  }
  return GapCause::unexplained;
}

}  // namespace

GapCause GapWalk::cause_of(const Slice& work) const {
  if (work.category != Category::collective) return GapCause::other_stream;
  switch (trace_.collectives.at(work.detail).shape.kind) {
    case hw::CollectiveKind::all_gather: return GapCause::all_gather;
    case hw::CollectiveKind::reduce_scatter: return GapCause::reduce_scatter;
    case hw::CollectiveKind::all_reduce: return GapCause::all_reduce;
  }
  return GapCause::other_stream;
}

std::vector<GapWalk::Piece> GapWalk::explain(Interval gap, const Slice* next) {
  pieces_.clear();
  begin_ = gap.begin;
  cursor_ = gap.end;
  limit_ = view_.elsewhere.size();
  while (cursor_ > begin_) {
    const Slice* call = next ? view_.launches.find(*next) : nullptr;
    const Slice* work = releaser(cursor_);
    const SimTime issued = call ? call->end + view_.launch_latency : begin_;
    if (issued > begin_ && (!work || issued > work->end)) {
      take_rest(issued);
      next = follow_host(call->end);
    } else if (work) {
      wait_for_device(*work);
      next = work;
    } else {
      take_rest(begin_);
    }
  }
  std::reverse(pieces_.begin(), pieces_.end());
  return pieces_;
}

/// The device work that ended last before `time` and within the gap.
const Slice* GapWalk::releaser(SimTime time) {
  candidate_ = last_ended(view_.elsewhere, time, limit_);
  if (candidate_ == limit_) return nullptr;
  const Slice* work = view_.elsewhere[candidate_];
  return work->end > begin_ ? work : nullptr;
}

void GapWalk::wait_for_device(const Slice& work) {
  limit_ = candidate_;
  take_rest(work.end);
  take(work.begin, cause_of(work));
}

/// Explains the gap by what the host did up to `host_time`. Host time counts one launch latency later, when it reaches the stream.
/// Returns the device work for which the host waited, if the walk goes on from there.
const Slice* GapWalk::follow_host(SimTime host_time) {
  const SimTime latency = view_.launch_latency;
  std::size_t blocks = view_.host_blocks.size();
  while (cursor_ > begin_) {
    const std::size_t at = last_ended(view_.host_blocks, host_time, blocks);
    const Slice* block = at < blocks ? view_.host_blocks[at] : nullptr;
    if (!block || block->end + latency <= begin_) break;
    take(block->end + latency, GapCause::launch_bound);
    if (const Slice* work = device_behind(*block)) {
      limit_ = candidate_;
      take(work->begin, cause_of(*work));
      return work;
    }
    take(block->begin + latency, trace::cause_of(block->host_state));
    host_time = block->begin;
    blocks = at;
  }
  take(begin_, GapCause::launch_bound);
  return nullptr;
}

/// The collective whose end let the host go on: then not the wait is to blame but what it waited for.
const Slice* GapWalk::device_behind(const Slice& block) {
  if (!waits_for_device(block.host_state)) return nullptr;
  const Slice* work = releaser(block.end);
  const bool released = work && work->category == Category::collective && work->end > block.begin && block.end - work->end <= kLongestDispatch;
  return released ? work : nullptr;
}

/// Explains the time from `from` to where the walk stands, and goes there.
void GapWalk::take(SimTime from, GapCause cause) {
  from = std::max(from, begin_);
  if (from >= cursor_) return;
  if (!pieces_.empty() && pieces_.back().cause == cause) pieces_.back().time.begin = from;
  else pieces_.push_back({{from, cursor_}, cause});
  cursor_ = from;
}

/// Nothing that ended held the stream up from `from` on: dispatch, or other work had the device to itself.
void GapWalk::take_rest(SimTime from) {
  from = std::max(from, begin_);
  if (cursor_ - from <= kLongestDispatch) return take(from, GapCause::launch_latency);
  const Slice* work = running_through(from);
  take(from, work ? cause_of(*work) : GapCause::unexplained);
}

/// Of the device work elsewhere that ran from before the middle of [from, cursor_) to after its end, that which ended first.
const Slice* GapWalk::running_through(SimTime from) const {
  const auto& work = view_.elsewhere;
  auto at = std::upper_bound(work.begin(), work.end(), cursor_, [](SimTime time, const Slice* slice) { return time < slice->end; });
  const auto last = work.end() - at > kLookahead ? at + kLookahead : work.end();
  at = std::find_if(at, last, [&](const Slice* slice) { return slice->begin <= from + (cursor_ - from) / 2; });
  return at == last ? nullptr : *at;
}

}  // namespace stepcast::trace
