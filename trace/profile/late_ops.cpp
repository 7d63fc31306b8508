// Test: tests/unit/profile_findings_test.cpp.
#include "trace/profile/late_ops.hpp"

#include <algorithm>
#include <map>

namespace stepcast::trace::profile {

namespace {

/// Launches of one thread that came too late, in order, and the end of the last outermost operator.
struct Late {
  std::vector<std::pair<Time, Time>> launches;  // begin of the call, length of the gap
  Time op_end = Time::min();
};

}  // namespace

std::vector<std::pair<std::uint32_t, Time>> late_ops(const Profile& profile, const Gaps& gaps, Cause cause) {
  std::map<std::uint32_t, Late> threads;
  for (const IdleGap& gap : gaps.gaps) {
    if (gap.cause == cause && gap.launch) threads[gap.launch->thread].launches.emplace_back(gap.launch->begin, gap.time.end - gap.time.begin);
  }
  for (auto& [thread, late] : threads) std::sort(late.launches.begin(), late.launches.end());
  std::map<std::uint32_t, Time> sums;
  for (const HostOp& op : profile.host_ops) {
    const auto thread = threads.find(op.thread);
    if (op.annotation || thread == threads.end() || op.end <= thread->second.op_end) continue;
    Late& late = thread->second;
    const Time begin = std::max(op.begin, late.op_end);
    late.op_end = op.end;
    auto launch = std::lower_bound(late.launches.begin(), late.launches.end(), std::pair(begin, Time::min()));
    for (; launch != late.launches.end() && launch->first < op.end; ++launch) sums[op.name] += launch->second;
  }
  std::vector<std::pair<std::uint32_t, Time>> out(sums.begin(), sums.end());
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace stepcast::trace::profile
