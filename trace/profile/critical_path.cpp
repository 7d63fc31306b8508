// Test: tests/unit/profile_critical_path_test.cpp.
#include "trace/profile/critical_path.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "trace/profile/collective_line.hpp"
#include "trace/profile/host_time.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

// What begins, or returns, this soon after something has ended waited for it.
constexpr Time kReturn = std::chrono::microseconds(20);

class Pathfinder {
 public:
  Pathfinder(const Profile& profile, std::uint32_t device, HostTime& host);
  /// `last`: of the operations that were launched in the step, the one that ended last.
  CriticalPath path(const Step& step, const DeviceOp& last);

 private:
  void on_device(const DeviceOp* op, CriticalPath& path);
  const DeviceOp* on_host(std::uint32_t thread, Time at, CriticalPath& path);
  void add(CriticalPath& path, std::string_view kind, std::string_view name, Time length);
  void add_latency(CriticalPath& path, const DeviceOp& op, const DeviceOp* awaited, Time begin, Time end);
  void add_host(std::uint32_t thread, Time begin, Time end, CriticalPath& path);
  [[nodiscard]] const DeviceOp* ended_last(Time since, Time until, const DeviceOp* before) const;
  [[nodiscard]] const DeviceOp* awaited_by(const DeviceOp& op) const;
  const std::vector<Blocked>& waits_of(std::uint32_t thread);

  const Profile& profile_;
  HostTime& host_;
  const CollectiveLine line_;
  std::vector<const DeviceOp*> by_end_;
  std::vector<std::uint32_t> order_;                               // of each operation of the file: the one before it on its stream
  std::map<std::uint32_t, std::vector<Blocked>> waits_;            // by thread: synchronisations of any kind, by end
  std::map<std::pair<std::string, std::string>, PathPart> parts_;  // of the path that is being found
};

Pathfinder::Pathfinder(const Profile& profile, std::uint32_t device, HostTime& host)
    : profile_(profile), host_(host), line_(profile, device), order_(profile.device_ops.size(), kNoIndex) {
  std::vector<std::uint32_t> last(profile.streams.size(), kNoIndex);
  for (std::uint32_t i = 0; i < profile.device_ops.size(); ++i) {
    const DeviceOp& op = profile.device_ops[i];
    if (op.kind == DeviceKind::other || profile.streams[op.stream].device != device) continue;
    order_[i] = std::exchange(last[op.stream], i);
    by_end_.push_back(&op);
  }
  std::stable_sort(by_end_.begin(), by_end_.end(), [](const DeviceOp* a, const DeviceOp* b) { return a->end < b->end; });
}

/// The operation that ended last in (since, until] and began before `before` did.
const DeviceOp* Pathfinder::ended_last(Time since, Time until, const DeviceOp* before) const {
  auto later = std::partition_point(by_end_.begin(), by_end_.end(), [until](const DeviceOp* op) { return op->end <= until; });
  for (; later != by_end_.begin() && (*(later - 1))->end > since; --later) {
    if (!before || (*(later - 1))->begin < before->begin) return *(later - 1);
  }
  return nullptr;
}

/// The one before it on its stream, or one of another stream that ended later and right before it began.
const DeviceOp* Pathfinder::awaited_by(const DeviceOp& op) const {
  const std::uint32_t before = order_[static_cast<std::size_t>(&op - profile_.device_ops.data())];
  const DeviceOp* own = before == kNoIndex ? nullptr : &profile_.device_ops[before];
  const DeviceOp* other = ended_last(op.begin - kSoon - Time(1), op.begin, &op);
  return other && (!own || other->end > own->end) ? other : own;
}

void Pathfinder::add(CriticalPath& path, std::string_view kind, std::string_view name, Time length) {
  if (length <= Time{}) return;
  path.by_kind[std::string(kind)] += length;
  PathPart& part = parts_[{std::string(kind), std::string(name)}];
  part.kind = kind;
  part.name = name;
  ++part.count;
  part.total += length;
}

/// Nothing of what is known to hold `op` up did so any more.
void Pathfinder::add_latency(CriticalPath& path, const DeviceOp& op, const DeviceOp* awaited, Time begin, Time end) {
  const bool latency = end - begin <= kSoon;
  add(path,
      latency   ? "launch_latency"
      : awaited ? "unexplained"
                : "before_recording",
      latency ? "" : profile_.names[op.name], end - std::max(begin, path.time.begin));
}

void Pathfinder::add_host(std::uint32_t thread, Time begin, Time end, CriticalPath& path) {
  begin = std::max(begin, path.time.begin);
  if (end <= begin) return;
  const HostShares shares = host_.divide(thread, begin, end);
  for (std::size_t i = 0; i < kHostStates; ++i) add(path, profile::name(static_cast<HostAt>(i)), "", shares[i]);
}

const std::vector<Blocked>& Pathfinder::waits_of(std::uint32_t thread) {
  const auto known = waits_.find(thread);
  if (known != waits_.end()) return known->second;
  std::vector<Blocked> waits = host_.blocked(thread);
  std::erase_if(waits, [](const Blocked& b) { return b.state == HostAt::data_loader || b.state == HostAt::allocator_call; });
  return waits_.emplace(thread, std::move(waits)).first->second;
}

/// From `at` back to the last wait of the thread that an operation's end ended, which it returns; null where the host had worked since the step's begin.
const DeviceOp* Pathfinder::on_host(std::uint32_t thread, Time at, CriticalPath& path) {
  const std::vector<Blocked>& waits = waits_of(thread);
  auto later = std::partition_point(waits.begin(), waits.end(), [at](const Blocked& wait) { return wait.time.end <= at; });
  for (; later != waits.begin() && (later - 1)->time.end > path.time.begin; --later) {
    const Blocked& wait = *(later - 1);
    const DeviceOp* op = ended_last(std::max(wait.time.begin, wait.time.end - kReturn), wait.time.end, nullptr);
    if (!op || op->end >= at) continue;
    add_host(thread, op->end, at, path);
    return op;
  }
  add_host(thread, path.time.begin, at, path);
  return nullptr;
}

/// From the end of `op` back to the step's begin.
void Pathfinder::on_device(const DeviceOp* op, CriticalPath& path) {
  for (Time until = op->end; op && until > path.time.begin;) {
    const Time length = until - std::max(op->begin, path.time.begin);
    if (op->kind == DeviceKind::communication) {
      const CollectiveLine::Place& place = line_.place(*op);
      add(path, place.type, profile_.names[op->name], length);
      if (length > Time{}) path.collectives.push_back({{place.type, place.position}, length});
    } else {
      add(path, op->kind == DeviceKind::compute ? "compute" : "copy", profile_.names[op->name], length);
    }
    until = std::min(until, op->begin);
    const HostCall* launch = profile_.launch_of(*op);
    const DeviceOp* awaited = awaited_by(*op);
    const Time launched = launch ? std::min(launch->end, until) : Time::min();
    if (awaited && awaited->end >= launched) {
      add_latency(path, *op, awaited, awaited->end, until);
      until = std::min(until, awaited->end);
      op = awaited;
      continue;
    }
    add_latency(path, *op, awaited, launch ? launched : path.time.begin, until);
    op = launch ? on_host(launch->thread, launched, path) : nullptr;
    if (op) until = std::min(launched, op->end);
  }
}

CriticalPath Pathfinder::path(const Step& step, const DeviceOp& last) {
  parts_.clear();
  CriticalPath path{step.name, {step.time.begin, std::max(step.time.end, last.end)}, {}, {}, {}};
  const HostCall* launch = profile_.launch_of(last);
  const DeviceOp* op = step.time.end > last.end && launch ? on_host(launch->thread, step.time.end, path) : &last;
  if (op) on_device(op, path);
  for (auto& [key, part] : parts_) path.parts.push_back(std::move(part));
  std::stable_sort(path.parts.begin(), path.parts.end(), [](const PathPart& a, const PathPart& b) { return a.total > b.total; });
  return path;
}

/// From the first launch call to the last one's end.
Step all_launches(const Profile& profile) {
  Step all{"", {Time::max(), Time::min()}};
  for (const DeviceOp& op : profile.device_ops) {
    const HostCall* launch = profile.launch_of(op);
    if (launch) all.time = {std::min(all.time.begin, launch->begin), std::max(all.time.end, launch->end)};
  }
  return all;
}

/// For each step the operation launched in it that ended last, null where there is none.
std::vector<const DeviceOp*> last_of(const Profile& profile, std::uint32_t device, const std::vector<Step>& steps) {
  std::vector<const DeviceOp*> last(steps.size());
  for (const DeviceOp& op : profile.device_ops) {
    const HostCall* launch = profile.launch_of(op);
    if (op.kind == DeviceKind::other || profile.streams[op.stream].device != device || !launch) continue;
    const auto next = std::partition_point(steps.begin(), steps.end(), [&](const Step& step) { return step.time.begin <= launch->begin; });
    if (next == steps.begin() || launch->begin >= (next - 1)->time.end) continue;
    const DeviceOp*& known = last[static_cast<std::size_t>(next - steps.begin()) - 1];
    if (!known || op.end > known->end) known = &op;
  }
  return last;
}

}  // namespace

std::vector<CriticalPath> critical_paths(const Profile& profile, std::uint32_t device, std::vector<Step> steps, HostTime& host) {
  if (steps.empty()) steps.push_back(all_launches(profile));
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.time.begin < b.time.begin; });
  const std::vector<const DeviceOp*> last = last_of(profile, device, steps);
  std::vector<CriticalPath> paths;
  Pathfinder finder(profile, device, host);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (last[i]) paths.push_back(finder.path(steps[i], *last[i]));
  }
  return paths;
}

void settle_stragglers(CriticalPath& path, const Lateness& lateness) {
  for (PathCollective& collective : path.collectives) {
    const auto type = lateness.find(collective.id.type);
    if (type == lateness.end() || collective.id.position >= type->second.size()) continue;
    const Time late = std::min(collective.time, type->second[collective.id.position]);
    if (late <= Time{}) continue;
    path.by_kind[std::string(collective.id.type)] -= late;
    path.by_kind[std::string(collective.id.type) + "_straggler"] += late;
    collective.time -= late;
  }
}

}  // namespace stepcast::trace::profile
