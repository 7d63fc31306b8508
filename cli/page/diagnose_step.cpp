// The timeline of a profiled step. See diagnose_page.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/page/diagnose_page.hpp"
#include "cli/page/timeline.hpp"
#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::cli {
namespace {

namespace profile = trace::profile;
constexpr std::size_t kStreamsShown = 10, kThreadsShown = 2;

struct Window {
  std::string name;
  profile::Time begin{}, end{};
};

Window window_of(const profile::RankDiagnosis& rank, std::uint32_t device) {
  if (!rank.steps.empty()) {
    std::vector<profile::Step> steps = rank.steps;
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end(),
                     [](const profile::Step& a, const profile::Step& b) { return a.time.end - a.time.begin < b.time.end - b.time.begin; });
    return {middle->name, middle->time.begin, middle->time.end};
  }
  Window window{"the whole profile", profile::Time::max(), profile::Time::min()};
  for (const profile::DeviceOp& op : rank.profile.device_ops) {
    if (rank.profile.streams[op.stream].device != device) continue;
    window.begin = std::min(window.begin, op.begin);
    window.end = std::max(window.end, op.end);
  }
  return window;
}

bool within(const Window& window, profile::Time begin, profile::Time end) { return end > window.begin && begin < window.end; }

/// Indices with the most of what was counted, most first.
std::vector<std::uint32_t> most(const std::map<std::uint32_t, std::int64_t>& counts, std::size_t shown) {
  std::vector<std::uint32_t> order;
  for (const auto& [index, count] : counts) order.push_back(index);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return counts.at(a) > counts.at(b); });
  if (order.size() > shown) order.resize(shown);
  return order;
}

const char* kind_of(profile::CallKind kind) {
  switch (kind) {
    case profile::CallKind::allocator: return "device_malloc";
    case profile::CallKind::synchronise: return "synchronize";
    case profile::CallKind::copy: return "copy";
    case profile::CallKind::plain: break;
  }
  return "call";
}

/// A thread's outermost ops; over them its calls that wait, copy or allocate, and data loading.
void add_thread(const profile::Profile& profile, const Window& window, std::uint32_t thread, Timeline& timeline) {
  timeline.open_lane("host " + profile.threads[thread]);
  profile::Time covered = window.begin;
  for (const profile::HostOp& op : profile.host_ops) {
    if (op.thread != thread || !within(window, op.begin, op.end)) continue;
    const std::string& name = profile.names[op.name];
    if (profile::is_data_loader(name)) timeline.add(op.begin.count(), op.end.count(), "data_loader", name, 1);
    else if (!op.annotation && op.end > covered) timeline.add(std::max(op.begin, covered).count(), op.end.count(), "op", name);
    if (!op.annotation) covered = std::max(covered, op.end);
  }
  for (const profile::HostCall& call : profile.host_calls) {
    const profile::CallKind kind = profile::kind_of_call(profile.names[call.name]);
    if (call.thread == thread && kind != profile::CallKind::plain && within(window, call.begin, call.end))
      timeline.add(call.begin.count(), call.end.count(), kind_of(kind), profile.names[call.name], 1);
  }
}

void add_stream(const profile::Profile& profile, const Window& window, std::uint32_t stream, Timeline& timeline) {
  static constexpr const char* kKinds[] = {"compute", "communication", "copy", "set", "other"};
  timeline.open_lane(fmt::format("stream {}", profile.streams[stream].number));
  for (const profile::DeviceOp& op : profile.device_ops) {
    if (op.stream == stream && op.kind != profile::DeviceKind::other && within(window, op.begin, op.end))
      timeline.add(op.begin.count(), op.end.count(), kKinds[static_cast<std::size_t>(op.kind)], profile.names[op.name]);
  }
}

/// Idle time of the main stream; returns how much.
profile::Time add_gaps(const profile::Profile& profile, const Window& window, const profile::Gaps& gaps, Timeline& timeline) {
  timeline.open_lane("why idle");
  profile::Time idle{};
  for (const profile::IdleGap& gap : gaps.gaps) {
    if (!within(window, gap.time.begin, gap.time.end)) continue;
    idle += std::min(gap.time.end, window.end) - std::max(gap.time.begin, window.begin);
    timeline.add(gap.time.begin.count(), gap.time.end.count(), std::string("gap_") + profile::name(gap.cause), "before " + profile.names[gap.next->name]);
  }
  return idle;
}

}  // namespace

OrderedJson step_section(const profile::RankDiagnosis& rank, const profile::DeviceMetrics& device, const std::string& where) {
  const profile::Profile& profile = rank.profile;
  const Window window = window_of(rank, device.device);
  std::map<std::uint32_t, std::int64_t> threads, streams;
  for (const profile::DeviceOp& op : profile.device_ops) {
    if (profile.streams[op.stream].device != device.device || !within(window, op.begin, op.end)) continue;
    ++streams[op.stream];
    if (const profile::HostCall* launch = profile.launch_of(op)) ++threads[launch->thread];
  }
  Timeline timeline(window.begin.count(), (window.end - window.begin).count());
  for (const std::uint32_t thread : most(threads, kThreadsShown)) {
    add_thread(profile, window, thread, timeline);
    if (timeline.lane_is_empty()) timeline.drop_lane();
  }
  std::string text = "Host and device by the host's clock.";
  bool has_gaps = false;
  for (const std::uint32_t stream : most(streams, kStreamsShown)) {
    add_stream(profile, window, stream, timeline);
    if (timeline.lane_is_empty()) timeline.drop_lane();
    else if (device.gaps && !has_gaps && profile.streams[stream].number == device.gaps->main_stream) {
      has_gaps = true;
      const profile::Time idle = add_gaps(profile, window, *device.gaps, timeline);
      text += fmt::format(" Between kernels, stream {} was idle for {} of {}.", device.gaps->main_stream, time_text(static_cast<double>(idle.count()) / 1e9),
                          time_text(static_cast<double>((window.end - window.begin).count()) / 1e9));
      if (timeline.lane_is_empty()) timeline.drop_lane();
    }
  }
  OrderedJson json = section("timeline", fmt::format("{}: {}", window.name, where), text);
  timeline.write(json);
  return json;
}

}  // namespace stepcast::cli
