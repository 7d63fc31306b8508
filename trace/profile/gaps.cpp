// Test: tests/unit/profile_gaps_test.cpp; the causes in real profiles: tests/model/profile_figures_test.cpp.
#include "trace/profile/gaps.hpp"

#include <algorithm>
#include <map>

#include "trace/profile/host_activity.hpp"

namespace stepcast::trace::profile {

namespace {

// Between kernels that were queued in time, less than this is dispatch.
constexpr Time kBackToBack = std::chrono::microseconds(10);

bool at_least_half(Time part, Time whole) { return 2 * part >= whole; }

class Judge {
 public:
  Judge(const Profile& profile, std::uint32_t device, std::uint32_t main_stream);
  IdleGap judge(Span time, const DeviceOp* before, const DeviceOp* next) const;
  void split(const IdleGap& gap, ExactSplit& split) const;

 private:
  [[nodiscard]] static Cause without_launch(const IdleGap& gap);
  [[nodiscard]] static Cause in_time(const IdleGap& gap);
  [[nodiscard]] Cause host_late(const IdleGap& gap, Time until) const;
  [[nodiscard]] std::optional<Cause> blocked(const IdleGap& gap, Time until, std::uint32_t thread) const;

  const Profile& profile_;
  HostActivity host_;
  Coverage comm_, memory_, other_compute_, comm_or_memory_, all_other_;
};

Judge::Judge(const Profile& profile, std::uint32_t device, std::uint32_t main_stream) : profile_(profile), host_(profile) {
  Spans comm, memory, other;
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind == DeviceKind::other || profile.streams[op.stream].device != device) continue;
    if (op.kind == DeviceKind::communication) comm.push_back({op.begin, op.end});
    else if (is_memory(op)) memory.push_back({op.begin, op.end});
    else if (op.stream != main_stream) other.push_back({op.begin, op.end});
  }
  comm_ = Coverage(std::move(comm));
  memory_ = Coverage(std::move(memory));
  other_compute_ = Coverage(std::move(other));
  comm_or_memory_ = Coverage(interval_sets::unite(comm_.spans(), memory_.spans()));
  all_other_ = Coverage(interval_sets::unite(comm_or_memory_.spans(), other_compute_.spans()));
}

IdleGap Judge::judge(Span time, const DeviceOp* before, const DeviceOp* next) const {
  IdleGap gap{time,
              Cause::no_launch_info,
              comm_.within(time.begin, time.end),
              memory_.within(time.begin, time.end),
              other_compute_.within(time.begin, time.end),
              before,
              next,
              profile_.launch_of(*next)};
  if (!gap.launch) {
    gap.cause = without_launch(gap);
    return gap;
  }
  const Time until = std::min(gap.launch->end, time.end);
  gap.cause = at_least_half(until - time.begin, time.end - time.begin) ? host_late(gap, until) : in_time(gap);
  return gap;
}

Cause Judge::without_launch(const IdleGap& gap) {
  const Time length = gap.time.end - gap.time.begin, most = std::max({gap.comm, gap.memory, gap.other_compute});
  if (length < kBackToBack) return Cause::back_to_back_under_10us;
  if (!at_least_half(most, length)) return Cause::no_launch_info;
  if (most == gap.comm) return Cause::comm_running;
  return most == gap.memory ? Cause::memcpy_running : Cause::other_stream_compute;
}

Cause Judge::in_time(const IdleGap& gap) {
  const Time length = gap.time.end - gap.time.begin;
  if (length < kBackToBack) return Cause::back_to_back_under_10us;
  if (at_least_half(gap.comm, length)) return Cause::device_wait_comm;
  if (at_least_half(gap.memory, length)) return Cause::device_wait_memcpy;
  return at_least_half(gap.other_compute, length) ? Cause::device_wait_other_stream_compute : Cause::device_wait_unexplained;
}

/// The host was late up to `until`: because it blocked on the launching thread, or on any, or because it was busy.
Cause Judge::host_late(const IdleGap& gap, Time until) const {
  for (const std::uint32_t thread : {gap.launch->thread, HostActivity::kAnyThread}) {
    if (const auto cause = blocked(gap, until, thread)) return *cause;
  }
  const Time late = until - gap.time.begin;
  return at_least_half(host_.any(gap.time.begin, until), late) ? Cause::host_launch_bound : Cause::host_outside_torch_ops;
}

std::optional<Cause> Judge::blocked(const IdleGap& gap, Time until, std::uint32_t thread) const {
  const Time begin = gap.time.begin, length = gap.time.end - begin;
  const Time allocator = host_.calls(CallKind::allocator, thread, begin, until), sync = host_.calls(CallKind::synchronise, thread, begin, until);
  const Time copy = host_.calls(CallKind::copy, thread, begin, until), loading = host_.data_loading(begin, until);
  const Time most = std::max({allocator, sync, copy, loading});
  if (!at_least_half(most, until - begin) || most == Time{}) return {};
  if (most == allocator) return Cause::host_allocator_call;
  if (most == sync) {
    if (at_least_half(gap.comm, length)) return Cause::host_sync_on_comm;
    return at_least_half(gap.memory, length) ? Cause::host_sync_on_memcpy : Cause::host_sync;
  }
  return most == copy ? Cause::host_memcpy_call : Cause::host_dataloader;
}

void Judge::split(const IdleGap& gap, ExactSplit& split) const {
  const auto [begin, end] = gap.time;
  const Time device = all_other_.within(begin, end);
  split.comm += gap.comm;
  split.memory += comm_or_memory_.within(begin, end) - gap.comm;
  split.other_compute += device - comm_or_memory_.within(begin, end);
  if (!gap.launch) {
    split.no_launch += end - begin - device;
    return;
  }
  const Time returned = std::clamp(gap.launch->end, begin, end);
  split.before_launch += returned - begin - all_other_.within(begin, returned);
  split.after_launch += end - returned - all_other_.within(returned, end);
}

/// The stream of `device` with most compute time, the first in the file of equals.
std::optional<std::uint32_t> main_stream_of(const Profile& profile, std::uint32_t device) {
  std::vector<Time> sums(profile.streams.size(), Time(-1));
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind != DeviceKind::compute || profile.streams[op.stream].device != device) continue;
    sums[op.stream] = std::max(sums[op.stream], Time{}) + (op.end - op.begin);
  }
  const auto most = std::max_element(sums.begin(), sums.end());
  if (most == sums.end() || *most < Time{}) return {};
  return static_cast<std::uint32_t>(most - sums.begin());
}

}  // namespace

const char* name(Cause cause) {
  switch (cause) {
    case Cause::host_allocator_call: return "host_allocator_call";
    case Cause::host_sync_on_comm: return "host_sync_on_comm";
    case Cause::host_sync_on_memcpy: return "host_sync_on_memcpy";
    case Cause::host_sync: return "host_sync";
    case Cause::host_memcpy_call: return "host_memcpy_call";
    case Cause::host_dataloader: return "host_dataloader";
    case Cause::host_launch_bound: return "host_launch_bound";
    case Cause::host_outside_torch_ops: return "host_outside_torch_ops";
    case Cause::device_wait_comm: return "device_wait_comm";
    case Cause::device_wait_memcpy: return "device_wait_memcpy";
    case Cause::device_wait_other_stream_compute: return "device_wait_other_stream_compute";
    case Cause::device_wait_unexplained: return "device_wait_unexplained";
    case Cause::back_to_back_under_10us: return "back_to_back_under_10us";
    case Cause::comm_running: return "comm_running";
    case Cause::memcpy_running: return "memcpy_running";
    case Cause::other_stream_compute: return "other_stream_compute";
    case Cause::no_launch_info: return "no_launch_info";
    case Cause::count_: break;
  }
  return "?";
}

std::optional<Gaps> find_gaps(const Profile& profile, std::uint32_t device) {
  const auto main_stream = main_stream_of(profile, device);
  if (!main_stream) return {};
  const Judge judge(profile, device, *main_stream);
  Gaps found;
  found.main_stream = profile.streams[*main_stream].number;
  const DeviceOp* last = nullptr;  // the kernel that ended last
  for (const DeviceOp& op : profile.device_ops) {
    if (op.stream != *main_stream || op.kind != DeviceKind::compute) continue;
    ++found.compute_kernels;
    if (last && op.begin > last->end) {
      const IdleGap gap = judge.judge({last->end, op.begin}, last, &op);
      found.total += gap.time.end - gap.time.begin;
      CauseSum& sum = found.by_cause[static_cast<std::size_t>(gap.cause)];
      ++sum.count;
      sum.total += gap.time.end - gap.time.begin;
      judge.split(gap, found.split);
      found.gaps.push_back(gap);
    } else if (last && op.begin < last->end) {
      ++found.overlapping_pairs;
    }
    if (!last || op.end > last->end) last = &op;
  }
  return found;
}

}  // namespace stepcast::trace::profile
