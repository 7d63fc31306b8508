// Test: tests/unit/profile_finer_causes_test.cpp.
#include "trace/profile/awaited.hpp"

#include <algorithm>

namespace stepcast::trace::profile {

namespace {

constexpr std::size_t kLine = 64;  // operations back to back among which the collective is sought that a straggler held up

}  // namespace

Awaited::Awaited(const Profile& profile, const CollectiveLine& line, std::uint32_t device) : profile_(profile), line_(line) {
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind != DeviceKind::other && profile.streams[op.stream].device == device) by_end_.push_back(&op);
  }
  std::stable_sort(by_end_.begin(), by_end_.end(), [](const DeviceOp* a, const DeviceOp* b) { return a->end < b->end; });
}

const DeviceOp* Awaited::by(const DeviceOp& op, Time since) const {
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

const DeviceOp* Awaited::collective_before(const DeviceOp& op, std::uint32_t main) const {
  const DeviceOp* at = &op;
  for (std::size_t steps = 0; steps < kLine; ++steps) {
    at = by(*at, at->begin - kSoon - Time(1));
    if (!at || at->kind == DeviceKind::communication) return at;
    if (at->kind == DeviceKind::compute && at->stream == main) return nullptr;
  }
  return nullptr;
}

std::vector<Time> Awaited::launch_times() const {
  std::vector<Time> begins;
  for (const DeviceOp* op : by_end_) {
    if (const HostCall* launch = profile_.launch_of(*op)) begins.push_back(launch->begin);
  }
  std::sort(begins.begin(), begins.end());
  return begins;
}

}  // namespace stepcast::trace::profile
