// Test: tests/unit/profile_memory_test.cpp.
#include "trace/profile/memory_timeline.hpp"

#include <algorithm>

#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

/// The shortest op or range around a time; steps are told apart from it.
std::string op_at(const Profile& profile, Time time) {
  const HostOp* best = nullptr;
  for (const HostOp& op : profile.host_ops) {
    if (op.begin > time) break;
    if (op.end <= time || is_step(profile.names[op.name])) continue;
    if (!best || op.end - op.begin <= best->end - best->begin) best = &op;
  }
  return best ? profile.names[best->name] : "";
}

class Maker {
 public:
  Maker(const std::vector<Step>& steps, Span time) : steps_(steps), time_(time) { of_steps_.resize(steps.size()); }

  void add(const MemoryEvent& event) {
    const MemoryPoint point{event.time, event.total_allocated, event.total_reserved};
    const std::int64_t change = any_ ? point.reserved - last_.reserved : 0;
    (change > 0 ? out_.growths : out_.drops) += change != 0 ? 1 : 0;
    (change > 0 ? out_.grown_bytes : out_.dropped_bytes) += change > 0 ? change : -change;
    if (!any_ || point.allocated > out_.peak.allocated) out_.peak = point;
    out_.peak_reserved = std::max(out_.peak_reserved, point.reserved);
    add_to_step(point, event.bytes);
    add_to_curve(point);
    last_ = point;
    any_ = true;
  }

  MemoryTimeline take(const Profile& profile) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (of_steps_[i].step.empty()) continue;
      if (steps_[i].time.begin <= out_.peak.time && out_.peak.time < steps_[i].time.end) out_.step = steps_[i].name;
      out_.steps.push_back(std::move(of_steps_[i]));
    }
    out_.op = op_at(profile, out_.peak.time);
    return std::move(out_);
  }

 private:
  void add_to_step(const MemoryPoint& point, std::int64_t bytes) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (point.time < steps_[i].time.begin || point.time >= steps_[i].time.end) continue;
      MemoryOfStep& step = of_steps_[i];
      step.step = steps_[i].name;
      step.peak_allocated = std::max(step.peak_allocated, point.allocated);
      step.peak_reserved = std::max(step.peak_reserved, point.reserved);
      step.allocations += std::max<std::int64_t>(0, bytes);
    }
  }

  void add_to_curve(const MemoryPoint& point) {
    const std::int64_t length = (time_.end - time_.begin).count() / kMemoryPoints + 1, stretch = (point.time - time_.begin).count() / length;
    if (any_ && stretch == stretch_) {
      if (point.allocated > out_.curve.back().allocated) out_.curve.back() = point;
    } else {
      out_.curve.push_back(point);
    }
    stretch_ = stretch;
  }

  const std::vector<Step>& steps_;
  const Span time_;
  std::vector<MemoryOfStep> of_steps_;
  MemoryTimeline out_;
  MemoryPoint last_;
  std::int64_t stretch_ = 0;
  bool any_ = false;
};

}  // namespace

std::map<std::string, MemoryTimeline> memory_timelines(const Profile& profile, const std::vector<Step>& steps) {
  if (profile.memory.empty()) return {};
  std::map<std::string, Maker> makers;
  for (const MemoryEvent& event : profile.memory) {
    if (event.total_allocated == kNone || event.total_reserved == kNone) continue;
    const std::string device = std::to_string(event.device_type) + ":" + std::to_string(event.device_id);
    makers.try_emplace(device, steps, Span{profile.memory.front().time, profile.memory.back().time}).first->second.add(event);
  }
  std::map<std::string, MemoryTimeline> out;
  for (auto& [device, maker] : makers) out.emplace(device, maker.take(profile));
  return out;
}

}  // namespace stepcast::trace::profile
