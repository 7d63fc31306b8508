// Two clocks: the host's, a map from recorded to new time that is built as the replay goes on, and the streams'. Test: tests/unit/profile_what_if_test.cpp.
#include "trace/profile/what_if.hpp"

#include <algorithm>

#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

// An operation that begins this soon after another stream's has ended waited for it; a call that returns this soon after an operation's end waited for that.
constexpr Time kCallItself = std::chrono::microseconds(5);  // what a synchronising call costs that has nothing to wait for

/// Recorded host time -> new host time: it goes on as recorded, but stands still in the cuts and jumps where a wait has another end than it had.
class HostClock {
 public:
  explicit HostClock(const Spans& cut) : cut_(cut) {}

  [[nodiscard]] Time operator()(Time at) const {
    const auto wait = std::partition_point(waits_.begin(), waits_.end(), [at](const Wait& w) { return w.recorded <= at; });
    const Time shift = wait == waits_.begin() ? Time{} : (wait - 1)->shift;
    return at + shift - cut_before(at);
  }
  /// At `recorded`, which no earlier call exceeded, the new time is `until`.
  void set(Time recorded, Time until) { waits_.push_back({recorded, until - recorded + cut_before(recorded)}); }

 private:
  struct Wait {
    Time recorded{}, shift{};
  };
  [[nodiscard]] Time cut_before(Time at) const {
    while (next_ < cut_.size() && cut_[next_].end <= at) done_ += cut_[next_].end - cut_[next_].begin, ++next_;
    while (next_ > 0 && cut_[next_ - 1].end > at) --next_, done_ -= cut_[next_].end - cut_[next_].begin;
    const bool within = next_ < cut_.size() && cut_[next_].begin < at;
    return done_ + (within ? at - cut_[next_].begin : Time{});
  }

  const Spans& cut_;
  std::vector<Wait> waits_;
  mutable std::size_t next_ = 0;  // cuts that end at or before the time asked for last, and their length
  mutable Time done_{};
};

class Replay {
 public:
  Replay(const Profile& profile, std::uint32_t device, const Change& change)
      : profile_(profile), change_(change), clock_(change.cut), last_of_stream_(profile.streams.size(), kNoIndex) {
    for (const DeviceOp& op : profile.device_ops) {
      if (op.kind != DeviceKind::other && profile.streams[op.stream].device == device) ops_.push_back(&op);
    }
    new_ends_.resize(ops_.size());
    for (std::uint32_t i = 0; i < ops_.size(); ++i) by_end_.push_back(i);
    std::stable_sort(by_end_.begin(), by_end_.end(), [&](std::uint32_t a, std::uint32_t b) { return ops_[a]->end < ops_[b]->end; });
    for (const HostCall& call : profile.host_calls) {
      const CallKind kind = call.runtime ? kind_of_call(profile.names[call.name]) : CallKind::plain;
      if (kind == CallKind::synchronise || (kind == CallKind::copy && call.end - call.begin > kCallItself)) blocking_.push_back(&call);
    }
    std::stable_sort(blocking_.begin(), blocking_.end(), [](const HostCall* a, const HostCall* b) { return a->end < b->end; });
  }

  Time span() {
    Time first{}, last = Time::min();
    std::size_t call = 0;
    for (std::uint32_t i = 0; i < ops_.size(); ++i) {
      for (; call < blocking_.size() && blocking_[call]->end <= ops_[i]->begin; ++call) block(*blocking_[call]);
      const Time begin = start(i);
      new_ends_[i] = begin + (ops_[i]->end - ops_[i]->begin);
      last_of_stream_[ops_[i]->stream] = i;
      if (i == 0) first = begin;  // also where another, launched earlier now, overtakes it: the profile begins here
      last = std::max(last, new_ends_[i]);
    }
    return ops_.empty() ? Time{} : last - first;
  }

 private:
  /// The operation that ended last by `time`, kNoIndex if none did in (after, time].
  [[nodiscard]] std::uint32_t ended_last(Time after, Time time) const {
    const auto next = std::partition_point(by_end_.begin(), by_end_.end(), [&](std::uint32_t i) { return ops_[i]->end <= time; });
    return next == by_end_.begin() || ops_[*(next - 1)]->end <= after ? kNoIndex : *(next - 1);
  }

  /// New begin of operation `i`: after its launch, the one before it on its stream and the one of another stream that it waited for. What passed from the
  /// latest of these to its begin passes again.
  Time start(std::uint32_t i) {
    const DeviceOp& op = *ops_[i];
    const HostCall* launch = profile_.launch_of(op);
    Time recorded = launch ? std::min(op.begin, launch->end) : op.begin;
    Time renewed = clock_(recorded);
    const auto after = [&](std::uint32_t other) {
      if (other == kNoIndex) return;
      recorded = std::max(recorded, std::min(op.begin, ops_[other]->end));
      renewed = std::max(renewed, new_ends_[other]);
    };
    const std::uint32_t before = last_of_stream_[op.stream];
    if (!launch && before != kNoIndex) {  // its launch is not known: it keeps its distance from the one before
      recorded = std::min(op.begin, ops_[before]->end);
      renewed = new_ends_[before];
    }
    after(before);
    const std::uint32_t other = ended_last(std::max(recorded, op.begin - kSoon), op.begin);
    if (other != kNoIndex && other < i) after(other);
    return renewed + (op.begin - recorded);
  }

  /// A call that returned soon after an operation had ended returns soon after it again.
  void block(const HostCall& call) {
    const std::uint32_t op = ended_last(std::max(call.begin, call.end - 2 * kSoon), call.end);
    const Time begin = clock_(call.begin), free = begin + std::min(kCallItself, call.end - call.begin);
    if (op == kNoIndex && !change_.synchronisations_too) return;
    const Time until = change_.synchronisations_too ? free : std::max(free, new_ends_[op] + (call.end - ops_[op]->end));
    clock_.set(call.end, until);
  }

  const Profile& profile_;
  const Change& change_;
  HostClock clock_;
  std::vector<const DeviceOp*> ops_;  // by begin
  std::vector<Time> new_ends_;
  std::vector<std::uint32_t> by_end_, last_of_stream_;
  std::vector<const HostCall*> blocking_;  // by end
};

}  // namespace

Time replayed_span(const Profile& profile, std::uint32_t device, const Change& change) { return Replay(profile, device, change).span(); }

}  // namespace stepcast::trace::profile
