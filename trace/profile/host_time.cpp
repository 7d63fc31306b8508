// Test: tests/unit/profile_finer_causes_test.cpp.
#include "trace/profile/host_time.hpp"

#include <algorithm>

#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

constexpr Time kPause = std::chrono::milliseconds(1);              // Python between two ops is shorter
constexpr Time kAsynchronousCopy = std::chrono::microseconds(10);  // a call that takes no longer did not wait for its copy
constexpr std::uint32_t kAllThreads = kNoIndex;

std::size_t index(HostAt state) { return static_cast<std::size_t>(state); }

/// What a runtime call is to the thread that makes it.
HostAt state_of(const Profile& profile, const HostCall& call) {
  switch (kind_of_call(profile.names[call.name])) {
    case CallKind::allocator: return HostAt::allocator_call;
    case CallKind::synchronise: return HostAt::synchronisation;
    case CallKind::copy: return call.end - call.begin > kAsynchronousCopy ? HostAt::blocking_copy : HostAt::busy;
    case CallKind::plain: break;
  }
  return HostAt::busy;
}

/// Calls and ops of one thread, or of all, by state.
std::array<Spans, kHostStates> spans_of(const Profile& profile, std::uint32_t thread) {
  std::array<Spans, kHostStates> spans;
  for (const HostCall& call : profile.host_calls) {
    if (call.runtime && (thread == kAllThreads || call.thread == thread)) spans[index(state_of(profile, call))].push_back({call.begin, call.end});
  }
  for (const HostOp& op : profile.host_ops) {
    if (!op.annotation && (thread == kAllThreads || op.thread == thread)) spans[index(HostAt::busy)].push_back({op.begin, op.end});
  }
  for (Spans& set : spans) set = interval_sets::merge(std::move(set));
  return spans;
}

Spans common(const Spans& a, const Spans& b) {
  Spans out;
  interval_sets::sweep_common(a, b, [&](const Span& both) { out.push_back(both); });
  return out;
}

/// Ranges of FSDP named so, and waits for an event or a stream in those of its scopes that gather parameters.
Spans limiter_waits(const Profile& profile, const Spans& synchronisations) {
  Spans limiter, scopes;
  for (const HostOp& op : profile.host_ops) {
    const std::string& name = profile.names[op.name];
    if (is_rate_limiter(name)) limiter.push_back({op.begin, op.end});
    else if (is_gathering_scope(name)) scopes.push_back({op.begin, op.end});
  }
  return interval_sets::unite(interval_sets::merge(std::move(limiter)), common(synchronisations, interval_sets::merge(std::move(scopes))));
}

}  // namespace

std::string_view name(HostAt state) {
  constexpr std::array<std::string_view, kHostStates> kNames = {"rate_limiter",    "data_loader",  "allocator_call", "blocking_copy",
                                                                "synchronisation", "launch_bound", "host_pause"};
  return kNames[static_cast<std::size_t>(state)];
}

HostTime::HostTime(const Profile& profile) : profile_(profile), any_thread_(spans_of(profile, kAllThreads)) {
  limiter_ = limiter_waits(profile, any_thread_[index(HostAt::synchronisation)]);
  for (const HostOp& op : profile.host_ops) {
    if (is_data_loader(profile.names[op.name])) loading_.push_back({op.begin, op.end});
  }
  loading_ = interval_sets::merge(std::move(loading_));
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind == DeviceKind::copy) copies_.push_back({op.begin, op.end});
  }
  copies_ = interval_sets::merge(std::move(copies_));
}

HostTime::Lane HostTime::build(std::uint32_t thread) const {
  std::array<Spans, kHostStates> states;
  Spans known;
  const auto claim = [&](HostAt state, const Spans& set) {
    const Spans rest = interval_sets::subtract(set, known);
    known = interval_sets::unite(known, rest);
    states[index(state)] = interval_sets::unite(states[index(state)], rest);
  };
  claim(HostAt::rate_limiter, limiter_);
  claim(HostAt::data_loader, loading_);
  const std::array<Spans, kHostStates> own = spans_of(profile_, thread);
  for (const std::array<Spans, kHostStates>* calls : {&own, &any_thread_}) {
    claim(HostAt::allocator_call, (*calls)[index(HostAt::allocator_call)]);
    claim(HostAt::blocking_copy, (*calls)[index(HostAt::blocking_copy)]);
    claim(HostAt::blocking_copy, common((*calls)[index(HostAt::synchronisation)], copies_));
    claim(HostAt::synchronisation, (*calls)[index(HostAt::synchronisation)]);
    claim(HostAt::busy, (*calls)[index(HostAt::busy)]);
  }
  Lane lane;
  for (std::size_t i = 0; i < kHostStates; ++i) lane.states[i] = Coverage(std::move(states[i]));
  lane.any = Coverage(std::move(known));
  return lane;
}

HostTime::Lane& HostTime::lane(std::uint32_t thread) {
  const auto known = lanes_.find(thread);
  return known != lanes_.end() ? known->second : lanes_.emplace(thread, build(thread)).first->second;
}

HostShares HostTime::divide(std::uint32_t thread, Time begin, Time end) {
  const Lane& known = lane(thread);
  HostShares shares{};
  for (std::size_t i = 0; i < kHostStates; ++i) shares[i] = known.states[i].within(begin, end);
  const Spans& spans = known.any.spans();
  auto next = std::partition_point(spans.begin(), spans.end(), [begin](const Span& span) { return span.end <= begin; });
  for (Time from = begin; from < end;) {
    const bool last = next == spans.end() || next->begin >= end;
    const Time until = last ? end : std::max(next->begin, from);
    at(shares, until - from >= kPause ? HostAt::pause : HostAt::busy) += until - from;
    from = last ? end : (next++)->end;
  }
  return shares;
}

std::vector<Blocked> HostTime::blocked(std::uint32_t thread) {
  std::vector<Blocked> out;
  for (const HostAt state : {HostAt::rate_limiter, HostAt::data_loader, HostAt::allocator_call, HostAt::blocking_copy, HostAt::synchronisation}) {
    for (const Span& span : lane(thread).states[index(state)].spans()) out.push_back({span, state});
  }
  std::sort(out.begin(), out.end(), [](const Blocked& a, const Blocked& b) { return a.time.end < b.time.end; });
  return out;
}

}  // namespace stepcast::trace::profile
