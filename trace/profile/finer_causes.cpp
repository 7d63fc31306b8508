// Test: tests/unit/profile_finer_causes_test.cpp.
#include "trace/profile/finer_causes.hpp"

#include <algorithm>
#include <array>

#include "trace/profile/awaited.hpp"
#include "trace/profile/collective_causes.hpp"
#include "trace/profile/collective_line.hpp"
#include "trace/profile/host_causes.hpp"
#include "trace/profile/main_inputs.hpp"
#include "trace/profile/step_context.hpp"

namespace stepcast::trace::profile {

namespace {

Coverage coverage_of(const Gaps& gaps) {
  Spans spans;
  for (const IdleGap& gap : gaps.gaps) spans.push_back(gap.time);
  return Coverage(std::move(spans));
}

/// The device, not the host, was what the gap waited for, though perhaps nothing ended right before it did.
bool device_waits(Cause cause) {
  constexpr std::array kWaits = {Cause::device_wait_comm, Cause::device_wait_memcpy, Cause::device_wait_other_stream_compute,
                                 Cause::comm_running,     Cause::memcpy_running,     Cause::other_stream_compute};
  return std::find(kWaits.begin(), kWaits.end(), cause) != kWaits.end();
}

/// From the end of each gap back through what it waited for.
class Walk {
 public:
  Walk(const Profile& profile, std::uint32_t device, const Gaps& gaps, HostTime& host)
      : profile_(profile),
        steps_(profile),
        gaps_(coverage_of(gaps)),
        line_(profile, device),
        awaited_(profile, line_, device),
        host_(host, steps_, LostLead(host, gaps_, awaited_.launch_times()), causes_),
        collectives_(profile, line_, awaited_, MainInputs(profile, {device, gaps.main_stream}), host_, causes_) {}
  Walk(const Walk&) = delete;  // its parts refer to each other
  Walk& operator=(const Walk&) = delete;
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
  [[nodiscard]] bool clips(const DeviceOp& op) const { return profile_.launch_of(op) && steps_.clipping(profile_.launch_of(op)->begin); }

  const Profile& profile_;
  FinerCauses causes_;
  const StepContext steps_;
  const Coverage gaps_;
  const CollectiveLine line_;
  const Awaited awaited_;
  HostCauses host_;
  CollectiveCauses collectives_;
  const IdleGap* gap_ = nullptr;  // that is being explained
};

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

/// Explains what came right before at.op and goes back to where that began. False where nothing is left.
bool Walk::back(Place& at) {
  const HostCall* launch = profile_.launch_of(*at.op);
  const Time launched = launch ? std::clamp(launch->end, at.part.begin, at.part.end) : at.part.begin;
  const DeviceOp* awaited = awaited_.by(*at.op, launched);
  const bool waited = awaited && (at.part.end - awaited->end <= kSoon || (at.op == gap_->next && device_waits(gap_->cause)));
  const Time rest = at.part.end - (waited ? awaited->end : launched);
  add_part(causes_, rest < kSoon ? "dispatch" : launch ? at.inputs : "no_launch_info", rest);
  if (waited) return back_to(*awaited, at), true;
  if (launched > at.part.begin) host_.until(*launch, {at.part.begin, launched}, at.late);
  return false;
}

void Walk::back_to(const DeviceOp& awaited, Place& at) {
  at.part.end = awaited.end;
  if (awaited.kind == DeviceKind::communication) {
    collective(awaited, at);
  } else {
    const bool of_collective = at.op->kind == DeviceKind::communication;
    add_part(causes_,
             !at.behind.empty()                    ? at.behind
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
  const CauseNames& names = collectives_.names_of(op);
  const bool queued = at.op->kind == DeviceKind::communication;
  const bool same = queued && line_.place(*at.op).type == line_.place(op).type;
  if (queued && !same && at.behind.empty()) at.behind = collectives_.names_of(*at.op).behind_other;
  if (!queued) at.behind = {};
  const std::string_view transfer = clips(op) ? "clipping" : !at.behind.empty() ? at.behind : names.transfer;
  collectives_.running(op, at.part.end - std::max(op.begin, at.part.begin), at.part.begin, *gap_, transfer);
  at.late = names.issued_late;
  at.inputs = names.inputs;
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
