// Test: tests/golden/diagnose_test.cpp.
#include "cli/report/diagnose/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"
#include "hw_models/text_file.hpp"
#include "trace/profile/memory_timeline.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
constexpr const char* kGpu = "1:";  // the profiler's device type of CUDA and ROCm
constexpr std::size_t kStepsShown = 5;

std::string bytes_of(std::int64_t bytes) { return size_text(static_cast<double>(bytes)); }

OrderedJson json_of(const profile::MemoryTimeline& m) {
  OrderedJson steps = OrderedJson::array(), curve = OrderedJson::array();
  for (const profile::MemoryOfStep& step : m.steps) {
    steps.push_back({{"step", step.step},
                     {"peak_allocated_bytes", step.peak_allocated},
                     {"peak_reserved_bytes", step.peak_reserved},
                     {"allocations_bytes", step.allocations}});
  }
  for (const profile::MemoryPoint& point : m.curve) curve.push_back({profile::microseconds(point.time), point.allocated, point.reserved});
  return {{"peak_allocated_bytes", m.peak.allocated},
          {"peak_at_us", profile::microseconds(m.peak.time)},
          {"peak_step", m.step},
          {"peak_op", m.op},
          {"peak_reserved_bytes", m.peak_reserved},
          {"reserve_growths", m.growths},
          {"reserve_drops", m.drops},
          {"reserve_grown_bytes", m.grown_bytes},
          {"reserve_dropped_bytes", m.dropped_bytes},
          {"steps", steps},
          {"curve", curve}};
}

std::string text_of(const profile::MemoryTimeline& m, const std::string& device) {
  std::string text =
      fmt::format("\nMemory of device {}: at most {} allocated, {} reserved\n", printable(device), bytes_of(m.peak.allocated), bytes_of(m.peak_reserved));
  text += wrapped(fmt::format("Peak{}{}. The reserve grew {} times by {} and fell {} times by {}.", m.step.empty() ? "" : " in " + printable(m.step),
                              m.op.empty() ? "" : " during " + printable(m.op), count_text(static_cast<double>(m.growths)), bytes_of(m.grown_bytes),
                              count_text(static_cast<double>(m.drops)), bytes_of(m.dropped_bytes)),
                  2);
  if (m.steps.empty()) return text;
  Table table({"step", "allocated", "reserved", "asked for"});
  for (std::size_t i = 0; i < std::min(kStepsShown, m.steps.size()); ++i) {
    const profile::MemoryOfStep& step = m.steps[i];
    table.add({printable(step.step), bytes_of(step.peak_allocated), bytes_of(step.peak_reserved), bytes_of(step.allocations)});
  }
  return text + table.render();
}

}  // namespace

OrderedJson memory_json(const profile::RankDiagnosis& rank) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [device, timeline] : profile::memory_timelines(rank.profile, rank.steps)) json[device] = json_of(timeline);
  return json;
}

std::string memory_text(const profile::RankDiagnosis& rank) {
  std::string text;
  for (const auto& [device, timeline] : profile::memory_timelines(rank.profile, rank.steps)) {
    if (device.starts_with(kGpu)) text += text_of(timeline, device.substr(2));
  }
  return text;
}

}  // namespace stepcast::cli
