// Test: tests/unit/profile_finer_causes_test.cpp.
#include "trace/profile/collective_line.hpp"

#include <algorithm>

#include "trace/profile/rates.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

struct OfType {
  std::uint32_t count = 0;
  Time end = Time::min();
};

}  // namespace

CollectiveLine::CollectiveLine(const Profile& profile, std::uint32_t device) {
  std::vector<signed char> of_optimizer(profile.names.size(), -1);
  const auto optimizes = [&](std::uint32_t name) {
    if (of_optimizer[name] < 0) of_optimizer[name] = kernel_class(profile.names[name]) == "optimizer" ? 1 : 0;
    return of_optimizer[name] == 1;
  };
  Spans running;
  std::map<std::string_view, OfType> types;
  std::vector<Time> updates;           // ends of the optimizer's kernels so far
  std::vector<const DeviceOp*> ended;  // collectives so far, by end
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind == DeviceKind::other || profile.streams[op.stream].device != device) continue;
    if (op.kind == DeviceKind::compute && optimizes(op.name)) updates.push_back(op.end);
    if (op.kind != DeviceKind::communication) continue;
    running.push_back({op.begin, op.end});
    OfType& type = types[collective_type(profile.names[op.name])];
    Place place{collective_type(profile.names[op.name]), type.count++, nullptr, op.begin};
    const auto later = std::partition_point(ended.begin(), ended.end(), [&](const DeviceOp* other) { return other->end <= op.begin; });
    if (later != ended.begin()) place.before = *(later - 1);
    const Time update = updates.empty() || updates.back() > op.begin ? Time::min() : updates.back();
    if (place.position > 0) place.earliest = std::min(op.begin, std::max(type.end, update));
    places_.emplace(&op, place);
    type.end = std::max(type.end, op.end);
    ended.insert(std::partition_point(later, ended.end(), [&](const DeviceOp* other) { return other->end <= op.end; }), &op);
  }
  running_ = Coverage(std::move(running));
}

}  // namespace stepcast::trace::profile
