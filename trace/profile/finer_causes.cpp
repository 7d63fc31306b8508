// Test: tests/unit/profile_finer_causes_test.cpp.
#include "trace/profile/finer_causes.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "trace/profile/collective_line.hpp"
#include "trace/profile/lost_lead.hpp"
#include "trace/profile/main_inputs.hpp"
#include "trace/profile/step_context.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

// What begins this soon after something has ended waited for it.

constexpr std::size_t kLine = 64;  // operations back to back among which the collective is sought that a straggler held up

/// What a wait for a collective of one type can be.
struct CauseNames {
  std::string transfer, behind_other, issued_late, inputs;
};

Coverage coverage_of(const Gaps& gaps) {
  Spans spans;
  for (const IdleGap& gap : gaps.gaps) spans.push_back(gap.time);
  return Coverage(std::move(spans));
}

/// Begins of the launch calls of operations, in order.
std::vector<Time> launch_times(const Profile& profile, const std::vector<const DeviceOp*>& ops) {
  std::vector<Time> begins;
  for (const DeviceOp* op : ops) {
    if (const HostCall* launch = profile.launch_of(*op)) begins.push_back(launch->begin);
  }
  std::sort(begins.begin(), begins.end());
  return begins;
}

std::vector<const DeviceOp*> ops_by_end(const Profile& profile, std::uint32_t device) {
  std::vector<const DeviceOp*> ops;
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind != DeviceKind::other && profile.streams[op.stream].device == device) ops.push_back(&op);
  }
  std::stable_sort(ops.begin(), ops.end(), [](const DeviceOp* a, const DeviceOp* b) { return a->end < b->end; });
  return ops;
}

/// The device, not the host, was what the gap waited for, though perhaps nothing ended right before it did.
bool device_waits(Cause cause) {
  constexpr std::array kWaits = {Cause::device_wait_comm, Cause::device_wait_memcpy, Cause::device_wait_other_stream_compute,
                                 Cause::comm_running,     Cause::memcpy_running,     Cause::other_stream_compute};
  return std::find(kWaits.begin(), kWaits.end(), cause) != kWaits.end();
}

class Walk {
 public:
  Walk(const Profile& profile, std::uint32_t device, const Gaps& gaps, HostTime& host)
      : profile_(profile),
        steps_(profile),
        host_(host),
        gaps_(coverage_of(gaps)),
        line_(profile, device),
        inputs_(profile, {device, gaps.main_stream}),
        by_end_(ops_by_end(profile, device)),
        lead_(host_, gaps_, launch_times(profile, by_end_)) {}
  void explain(const IdleGap& gap);
  FinerCauses take() { return std::move(causes_); }

 private:
  /// The part of the gap that is not explained yet, and the operation that began at its end.
  struct Place {
    const DeviceOp* op = nullptr;
    Span part;
    std::string_view late, inputs;  // causes if the host was busy until it launched `op`, and if nothing shows what `op` waited for
    std::string_view behind = {};   // cause of the collectives before `op`, which is one itself and stood in another one's way
  };
  bool back(Place& at);
  void back_to(const DeviceOp& awaited, Place& at);
  void collective(const DeviceOp& op, Place& at);
  [[nodiscard]] const DeviceOp* before(const DeviceOp& op) const;
  [[nodiscard]] Time ready(const DeviceOp& op) const;
  std::size_t queued(const DeviceOp& op);
  void running(const DeviceOp& op, Time time, Time gap_begin, std::string_view transfer);
  void host(const HostCall& launch, Span part, std::string_view late);
  void too_late(const HostCall& launch, Time time, std::string_view late);
  void add(std::string_view cause, Time time);
  [[nodiscard]] const DeviceOp* awaited_by(const DeviceOp& op, Time since) const;
  [[nodiscard]] const CauseNames& names_of(std::string_view type);
  [[nodiscard]] std::string_view cause_of(HostAt state, Time at) const;
  [[nodiscard]] bool clips(const DeviceOp& op) const { return profile_.launch_of(op) && steps_.clipping(profile_.launch_of(op)->begin); }

  const Profile& profile_;
  const StepContext steps_;
  HostTime& host_;
  const Coverage gaps_;
  const CollectiveLine line_;
  const MainInputs inputs_;
  const std::vector<const DeviceOp*> by_end_;
  LostLead lead_;
  std::map<std::string_view, CauseNames> names_;
  std::unordered_map<const DeviceOp*, std::size_t> places_;  // in the queue
  const IdleGap* gap_ = nullptr;                             // that is being explained
  FinerCauses causes_;
};

void Walk::add(std::string_view cause, Time time) {
  if (time <= Time{}) return;
  const auto known = causes_.by_cause.find(cause);
  CauseSum& sum = known != causes_.by_cause.end() ? known->second : causes_.by_cause[std::string(cause)];
  ++sum.count;
  sum.total += time;
}

const CauseNames& Walk::names_of(std::string_view type) {
  const auto known = names_.find(type);
  if (known != names_.end()) return known->second;
  const std::string text(type);
  return names_[type] = {text + "_transfer", text + "_behind_other", text + "_issued_late", text + "_inputs"};
}

void Walk::explain(const IdleGap& gap) {
  gap_ = &gap;
  const HostCall* before = profile_.launch_of(*gap.before);
  std::string_view late = "launch_bound";
  if (clips(*gap.next)) late = "clipping";
  else if (gap.launch && steps_.optimizer(gap.launch->begin)) late = "optimizer_launches";
  else if (gap.launch && before && steps_.boundary(before->begin, gap.launch->begin)) late = "step_boundary";
  Place at{gap.next, gap.time, late, "unexplained"};
  while (at.part.begin < at.part.end && back(at)) {}
}

/// The operation that ended last in (since, op.begin]; for a collective another one that ended right before it, if one did.
const DeviceOp* Walk::awaited_by(const DeviceOp& op, Time since) const {
  if (op.kind == DeviceKind::communication) {
    const DeviceOp* before = line_.place(op).before;
    if (before && before->begin < op.begin && before->end > since && op.begin - before->end <= kSoon) return before;
  }
  auto later = std::partition_point(by_end_.begin(), by_end_.end(), [&](const DeviceOp* other) { return other->end <= op.begin; });
  for (; later != by_end_.begin() && (*(later - 1))->end > since; --later) {
    if ((*(later - 1))->begin < op.begin) return *(later - 1);
  }
  return nullptr;
}

/// Explains what came right before at.op and goes back to where that began. False where nothing is left.
bool Walk::back(Place& at) {
  const HostCall* launch = profile_.launch_of(*at.op);
  const Time launched = launch ? std::clamp(launch->end, at.part.begin, at.part.end) : at.part.begin;
  const DeviceOp* awaited = awaited_by(*at.op, launched);
  const bool waited = awaited && (at.part.end - awaited->end <= kSoon || (at.op == gap_->next && device_waits(gap_->cause)));
  const Time rest = at.part.end - (waited ? awaited->end : launched);
  add(rest < kSoon ? "dispatch" : launch ? at.inputs : "no_launch_info", rest);
  if (waited) return back_to(*awaited, at), true;
  if (launched > at.part.begin) host(*launch, {at.part.begin, launched}, at.late);
  return false;
}

void Walk::back_to(const DeviceOp& awaited, Place& at) {
  at.part.end = awaited.end;
  if (awaited.kind == DeviceKind::communication) {
    collective(awaited, at);
  } else {
    const bool of_collective = at.op->kind == DeviceKind::communication;
    add(!at.behind.empty()                    ? at.behind
        : of_collective                       ? at.inputs
        : awaited.kind == DeviceKind::compute ? "other_stream_compute"
                                              : "copy",
        awaited.end - std::max(awaited.begin, at.part.begin));
    at.behind = {};
  }
  at.op = &awaited;
  at.part.end = std::max(awaited.begin, at.part.begin);
}

/// `op` ran until the end of at.part. What another one of its type spends before it is transfer as well; what one of another type spends stands in its way.
void Walk::collective(const DeviceOp& op, Place& at) {
  const CauseNames& names = names_of(line_.place(op).type);
  const bool queued = at.op->kind == DeviceKind::communication;
  const bool same = queued && line_.place(*at.op).type == line_.place(op).type;
  if (queued && !same && at.behind.empty()) at.behind = names_of(line_.place(*at.op).type).behind_other;
  if (!queued) at.behind = {};
  running(op, at.part.end - std::max(op.begin, at.part.begin), at.part.begin, clips(op) ? "clipping" : !at.behind.empty() ? at.behind : names.transfer);
  at.late = names.issued_late;
  at.inputs = names.inputs;
}

/// The collective before `op` for which it waited, directly or through kernels of other streams than the main one.
const DeviceOp* Walk::before(const DeviceOp& op) const {
  const DeviceOp* at = &op;
  for (std::size_t steps = 0; steps < kLine; ++steps) {
    at = awaited_by(*at, at->begin - kSoon - Time(1));
    if (!at || at->kind == DeviceKind::communication) return at;
    if (at->kind == DeviceKind::compute && at->stream == gap_->next->stream) return nullptr;
  }
  return nullptr;
}

/// A gathering needs nothing but its launch; others, what the main stream had been given before it. Where the launch is not in the file, nothing says that it could have been earlier.
Time Walk::ready(const DeviceOp& op) const {
  const HostCall* launch = profile_.launch_of(op);
  if (!launch) return op.begin;
  return std::min(op.begin, line_.place(op).type == "allgather" ? launch->end : inputs_.ready(*launch));
}

/// The place of `op` in the queue, into which it and those before it come.
std::size_t Walk::queued(const DeviceOp& op) {
  const auto known = places_.find(&op);
  if (known != places_.end()) return known->second;
  const std::size_t first = causes_.queue.size();
  for (const DeviceOp* at = &op; at;) {
    const std::size_t place = causes_.queue.size();
    places_.emplace(at, place);
    causes_.queue.push_back({{line_.place(*at).type, line_.place(*at).position}, {at->begin, at->end}, ready(*at)});
    at = before(*at);
    const auto met = at ? places_.find(at) : places_.end();
    if (at) causes_.queue[place].before = met == places_.end() ? place + 1 : met->second;
    if (met != places_.end()) break;
  }
  return first;
}

/// `time` of the gap in which `op` ran. An all-gather would have been over earlier by as much as it could have begun earlier.
void Walk::running(const DeviceOp& op, Time time, Time gap_begin, std::string_view transfer) {
  const CollectiveLine::Place& place = line_.place(op);
  const CauseNames& names = names_of(place.type);
  const HostCall* launch = profile_.launch_of(op);
  CollectiveWait wait{queued(op), gap_->time, std::string(transfer), time, {}};
  Time late{};
  if (place.type == "allgather" && launch) {
    const Time until = std::min(op.begin, gap_begin), launched = std::clamp(launch->end, place.earliest, std::max(place.earliest, until));
    const bool in_line = place.before && op.begin - place.before->end <= kSoon && line_.place(*place.before).type != place.type;
    if (in_line) wait.behind = std::min(time, line_.empty(launched, until));
    late = std::min(time - wait.behind, line_.empty(place.earliest, launched));
    wait.transfer -= wait.behind + late;
  }
  add(transfer, wait.transfer);
  add(names.behind_other, wait.behind);
  if (late > Time{}) too_late(*launch, late, names.issued_late);
  if (wait.transfer + wait.behind > Time{}) causes_.waits.push_back(std::move(wait));
}

std::string_view Walk::cause_of(HostAt state, Time at) const { return state == HostAt::synchronisation && steps_.clipping(at) ? "clipping" : name(state); }

/// The host launched at the end of `part`.
void Walk::host(const HostCall& launch, Span part, std::string_view late) {
  const HostShares shares = host_.divide(launch.thread, part.begin, part.end);
  for (std::size_t i = 0; i < kHostStates; ++i) {
    const auto state = static_cast<HostAt>(i);
    if (state == HostAt::busy) too_late(launch, shares[i], late);
    else add(cause_of(state, part.begin), shares[i]);
  }
}

/// A launch came `time` too late although the host was busy: what had taken its lead before, or else the launches themselves.
void Walk::too_late(const HostCall& launch, Time time, std::string_view late) {
  for (const LostLead::Charge& charge : lead_.charge(launch.thread, launch.begin, time)) {
    add(cause_of(charge.to.state, charge.to.time.begin), charge.time);
    time -= charge.time;
  }
  add(late, time);
}

}  // namespace

FinerCauses finer_causes(const Profile& profile, std::uint32_t device, const Gaps& gaps, HostTime& host) {
  Walk walk(profile, device, gaps, host);
  for (const IdleGap& gap : gaps.gaps) walk.explain(gap);
  return walk.take();
}

bool is_own_doing(std::string_view cause) {
  constexpr std::array<std::string_view, 3> kOthers = {"_transfer", "_behind_other", "_straggler"};
  return cause != "dispatch" && cause != "no_launch_info" && cause != "unexplained" &&
         std::none_of(kOthers.begin(), kOthers.end(), [cause](std::string_view end) { return cause.ends_with(end); });
}

}  // namespace stepcast::trace::profile
