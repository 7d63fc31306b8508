// Test: tests/unit/profile_finer_causes_test.cpp.
#include "trace/profile/collective_causes.hpp"

#include <algorithm>
#include <utility>

namespace stepcast::trace::profile {

const CauseNames& CollectiveCauses::names_of(const DeviceOp& collective) {
  const std::string_view type = line_.place(collective).type;
  const auto known = names_.find(type);
  if (known != names_.end()) return known->second;
  const std::string text(type);
  return names_[type] = {text + "_transfer", text + "_behind_other", text + "_issued_late", text + "_inputs"};
}

/// A gathering needs nothing but its launch; others, what the main stream had been given before it. Where the launch is not in the file, nothing says that it could have been earlier.
Time CollectiveCauses::ready(const DeviceOp& op) const {
  const HostCall* launch = profile_.launch_of(op);
  if (!launch) return op.begin;
  return std::min(op.begin, line_.place(op).type == "allgather" ? launch->end : inputs_.ready(*launch));
}

/// The place of `op` in the queue, into which it and those before it come.
std::size_t CollectiveCauses::queued(const DeviceOp& op, std::uint32_t main) {
  const auto known = places_.find(&op);
  if (known != places_.end()) return known->second;
  const std::size_t first = causes_.queue.size();
  for (const DeviceOp* at = &op; at;) {
    const std::size_t place = causes_.queue.size();
    places_.emplace(at, place);
    causes_.queue.push_back({{line_.place(*at).type, line_.place(*at).position}, {at->begin, at->end}, ready(*at)});
    at = awaited_.collective_before(*at, main);
    const auto met = at ? places_.find(at) : places_.end();
    if (at) causes_.queue[place].before = met == places_.end() ? place + 1 : met->second;
    if (met != places_.end()) break;
  }
  return first;
}

void CollectiveCauses::running(const DeviceOp& op, Time time, Time part_begin, const IdleGap& gap, std::string_view transfer) {
  const CollectiveLine::Place& place = line_.place(op);
  const CauseNames& names = names_of(op);
  const HostCall* launch = profile_.launch_of(op);
  CollectiveWait wait{queued(op, gap.next->stream), gap.time, std::string(transfer), time, {}};
  Time late{};
  if (place.type == "allgather" && launch) {
    const Time until = std::min(op.begin, part_begin), launched = std::clamp(launch->end, place.earliest, std::max(place.earliest, until));
    const bool in_line = place.before && op.begin - place.before->end <= kSoon && line_.place(*place.before).type != place.type;
    if (in_line) wait.behind = std::min(time, line_.empty(launched, until));
    late = std::min(time - wait.behind, line_.empty(place.earliest, launched));
    wait.transfer -= wait.behind + late;
  }
  add_part(causes_, transfer, wait.transfer);
  add_part(causes_, names.behind_other, wait.behind);
  if (late > Time{}) host_.too_late(*launch, late, names.issued_late);
  if (wait.transfer + wait.behind > Time{}) causes_.waits.push_back(std::move(wait));
}

}  // namespace stepcast::trace::profile
