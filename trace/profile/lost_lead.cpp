// Test: tests/unit/profile_finer_causes_test.cpp.
#include "trace/profile/lost_lead.hpp"

#include <algorithm>

namespace stepcast::trace::profile {

namespace {

constexpr std::ptrdiff_t kQueue = 1024;  // launches by which a host can be ahead (CUDA's queue)

}  // namespace

LostLead::Thread& LostLead::thread(std::uint32_t number) {
  const auto known = threads_.find(number);
  return known != threads_.end() ? known->second : threads_.emplace(number, Thread{host_.blocked(number), 0, {}}).first->second;
}

std::vector<LostLead::Charge> LostLead::charge(std::uint32_t number, Time launch, Time late) {
  Thread& t = thread(number);
  for (; t.next < t.blocked.size() && t.blocked[t.next].time.end <= launch; ++t.next) {
    const Blocked& b = t.blocked[t.next];
    const Time lost = b.time.end - b.time.begin - gaps_.within(b.time.begin, b.time.end);
    if (lost > Time{}) t.open.push_back({b, lost});
  }
  const auto before = std::partition_point(launches_.begin(), launches_.end(), [launch](Time begin) { return begin < launch; }) - launches_.begin();
  const Time oldest = before > kQueue ? launches_[static_cast<std::size_t>(before - kQueue)] : Time::min();
  std::vector<Charge> charges;
  while (late > Time{} && !t.open.empty() && t.open.back().to.time.end >= oldest) {
    Charge& last = t.open.back();
    const Time part = std::min(late, last.time);
    charges.push_back({last.to, part});
    late -= part;
    last.time -= part;
    if (last.time == Time{}) t.open.pop_back();
  }
  return charges;
}

}  // namespace stepcast::trace::profile
