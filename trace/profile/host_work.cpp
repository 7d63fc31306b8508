// Test: tests/unit/profile_host_work_test.cpp.
#include "trace/profile/host_work.hpp"

#include <algorithm>
#include <utility>

#include "trace/profile/host_time.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

constexpr int kUsual = 10;  // times the median: a launch call that takes longer did more than launch

bool is_launch_call(const Profile& profile, const HostCall& call) { return call.runtime && contains(profile.names[call.name], "Launch"); }

Time median_launch(const Profile& profile) {
  std::vector<Time> lengths;
  for (const HostCall& call : profile.host_calls) {
    if (is_launch_call(profile, call)) lengths.push_back(call.end - call.begin);
  }
  if (lengths.empty()) return {};
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

/// In which launching went on, but no work was done.
Spans queue_waits(const Profile& profile) {
  const Time usual = kUsual * median_launch(profile);
  Spans waits;
  for (const HostCall& call : profile.host_calls) {
    if (!call.runtime && is_full_queue(profile.names[call.name])) waits.push_back({call.begin, call.end});
    else if (is_launch_call(profile, call)) waits.push_back({std::min(call.begin + usual, call.end), call.end});
  }
  return interval_sets::merge(std::move(waits));
}

/// A stretch from the first launch in it.
struct Launching {
  Watched host;
  bool any = false;
  Span device;

  void add(const HostCall& call, const DeviceOp& op) {
    if (!any) host = {call.thread, {call.begin, call.end}}, device = {op.begin, op.end};
    host.time = {std::min(host.time.begin, call.begin), std::max(host.time.end, call.end)};
    device = {std::min(device.begin, op.begin), std::max(device.end, op.end)};
    any = true;
  }
};

using Launched = std::vector<std::pair<const HostCall*, const DeviceOp*>>;

/// The kernels of a device with the calls that launched them, in the order of these.
Launched launched(const Profile& profile, std::uint32_t device) {
  Launched out;
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind != DeviceKind::compute || profile.streams[op.stream].device != device) continue;
    if (const HostCall* call = profile.launch_of(op)) out.emplace_back(call, &op);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first->begin < b.first->begin; });
  return out;
}

}  // namespace

std::vector<Watched> steps_of_host(const Profile& profile) {
  std::vector<Watched> steps;
  for (const HostOp& op : profile.host_ops) {
    if (op.annotation && is_step(profile.names[op.name])) steps.push_back({op.thread, {op.begin, op.end}});
  }
  if (steps.size() > 1) steps.erase(steps.begin());
  if (!steps.empty()) return steps;
  Watched whole;
  bool any = false;
  for (const HostCall& call : profile.host_calls) {
    if (!is_launch_call(profile, call)) continue;
    if (!any) whole = {call.thread, {call.begin, call.end}};
    whole.time.end = std::max(whole.time.end, call.end);
    any = true;
  }
  return any ? std::vector<Watched>{whole} : std::vector<Watched>{};
}

std::vector<ForwardRun> forwards_of(const Profile& profile, std::uint32_t device, const Passes& passes) {
  const Launched kernels = launched(profile, device);
  std::vector<ForwardRun> out;
  for (const Watched& step : steps_of_host(profile)) {
    Launching forward;
    const auto first = std::partition_point(kernels.begin(), kernels.end(), [&](const auto& kernel) { return kernel.first->begin < step.time.begin; });
    for (auto kernel = first; kernel != kernels.end() && kernel->first->begin < step.time.end; ++kernel) {
      const Pass pass = passes.at(kernel->first->thread, kernel->first->begin);
      if (pass == Pass::forward) forward.add(*kernel->first, *kernel->second);
      else if (pass == Pass::backward && forward.any) break;
    }
    if (forward.any) out.push_back({forward.host, forward.device});
  }
  return out;
}

Time host_work(const Profile& profile, const std::vector<Watched>& stretches) {
  HostTime host(profile);
  const Spans waits = queue_waits(profile);
  Time work{};
  for (const Watched& stretch : stretches) {
    // Waits are cut out first: with them, the short work around a long one would look like a pause.
    for (const Span& piece : interval_sets::subtract(Spans{stretch.time}, waits)) {
      HostShares shares = host.divide(stretch.thread, piece.begin, piece.end);
      work += at(shares, HostAt::busy);
    }
  }
  return work;
}

}  // namespace stepcast::trace::profile
