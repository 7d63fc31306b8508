// Numbers of one device. Test: tests/model/profile_figures_test.cpp.
#include <algorithm>
#include <cmath>
#include <optional>

#include "trace/profile/coverage.hpp"
#include "trace/profile/metrics.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

using Ops = std::vector<const DeviceOp*>;

Time length(const DeviceOp& op) { return op.end - op.begin; }

TimedOps timed(const Profile& profile, const Ops& ops) {
  TimedOps out;
  out.reserve(ops.size());
  std::vector<std::optional<bool>> known(profile.names.size());
  const auto nccl = [&](std::uint32_t name) {
    if (!known[name]) known[name] = is_nccl(profile.names[name]);
    return *known[name];
  };
  for (const DeviceOp* op : ops) out.push_back({{op->begin, op->end}, op->kind, op->kind == DeviceKind::communication && nccl(op->name)});
  return out;
}

std::vector<StepOnDevice> in_step_windows(const TimedOps& ops, const std::vector<Step>& steps) {
  std::vector<StepOnDevice> out;
  for (const Step& step : steps) out.push_back({step.name, device_times_within(ops, step.time)});
  return out;
}

/// The step in which the op was launched; "none" without one.
std::string launching_step(const Profile& profile, const DeviceOp& op, const std::vector<Step>& steps) {
  const HostCall* call = profile.launch_of(op);
  if (!call) return "none";
  const auto at = std::find_if(steps.begin(), steps.end(), [&](const Step& step) { return step.time.begin <= call->begin && call->begin < step.time.end; });
  return at == steps.end() ? "none" : at->name;
}

std::vector<StepOnDevice> by_launching_step(const Profile& profile, const Ops& ops, const std::vector<Step>& steps) {
  if (steps.empty()) return {};
  std::map<std::string, Ops> parts;
  for (const DeviceOp* op : ops) parts[launching_step(profile, *op, steps)].push_back(op);
  std::vector<StepOnDevice> out;
  const auto take = [&](const std::string& name) {
    const auto part = parts.extract(name);
    if (!part.empty()) out.push_back({name, device_times(timed(profile, part.mapped()))});
  };
  for (const Step& step : steps) take(step.name);
  take("none");
  return out;
}

Launches launches_of(const Profile& profile, const Ops& ops) {
  Launches out;
  std::vector<Time> delays, calls;
  for (const DeviceOp* op : ops) {
    const HostCall* call = profile.launch_of(*op);
    if (!call) {
      ++out.unmatched;
      continue;
    }
    ++out.matched;
    delays.push_back(op->begin - call->end);
    calls.push_back(call->end - call->begin);
    if (delays.back() < Time{}) ++out.negative;
  }
  out.start_minus_launch_end = distribution(std::move(delays));
  out.launch_call = distribution(std::move(calls));
  return out;
}

Queue queue_of(std::vector<std::pair<Time, int>> changes, std::int64_t ops) {
  // At equal times the launch counts before the start.
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.second > b.second; });
  Queue queue;
  queue.ops = ops;
  std::int64_t depth = 0;
  double weighted = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (i > 0) weighted += static_cast<double>(depth) * static_cast<double>((changes[i].first - changes[i - 1].first).count());
    depth += changes[i].second;
    queue.max = std::max(queue.max, depth);
  }
  const double span = static_cast<double>((changes.back().first - changes.front().first).count());
  queue.time_weighted_mean = span > 0 ? weighted / span : 0;
  return queue;
}

std::map<std::int64_t, Queue> queues_of(const Profile& profile, const Ops& ops) {
  std::map<std::int64_t, std::vector<std::pair<Time, int>>> changes;
  for (const DeviceOp* op : ops) {
    const HostCall* call = profile.launch_of(*op);
    if (!call) continue;
    auto& of_stream = changes[profile.streams[op->stream].number];
    of_stream.emplace_back(call->begin, 1);
    of_stream.emplace_back(op->begin, -1);
  }
  std::map<std::int64_t, Queue> out;
  for (auto& [stream, list] : changes) {
    const auto count = static_cast<std::int64_t>(list.size() / 2);
    out.emplace(stream, queue_of(std::move(list), count));
  }
  return out;
}

std::map<std::int64_t, StreamSums> streams_of(const Profile& profile, const Ops& ops) {
  std::map<std::int64_t, StreamSums> out;
  for (const DeviceOp* op : ops) {
    StreamSums& sums = out[profile.streams[op->stream].number];
    ++sums.ops;
    (op->kind == DeviceKind::compute ? sums.compute : op->kind == DeviceKind::communication ? sums.comm : sums.memory) += length(*op);
  }
  return out;
}

std::vector<NamedTotal> totals_of(const Profile& profile, const Ops& ops) {
  std::map<std::uint32_t, NamedTotal> by_name;
  for (const DeviceOp* op : ops) {
    NamedTotal& total = by_name[op->name];
    ++total.count;
    total.total += length(*op);
  }
  std::vector<NamedTotal> out;
  for (auto& [number, total] : by_name) {
    total.name = profile.names[number];
    out.push_back(std::move(total));
  }
  std::stable_sort(out.begin(), out.end(), [](const NamedTotal& a, const NamedTotal& b) { return a.total > b.total; });
  return out;
}

std::map<std::string, CollectiveTotal, std::less<>> collectives_of(const Profile& profile, const Ops& ops) {
  const Coverage compute(spans_of(timed(profile, ops), DeviceKind::compute));
  std::map<std::string, CollectiveTotal, std::less<>> out;
  for (const DeviceOp* op : ops) {
    if (op->kind != DeviceKind::communication) continue;
    CollectiveTotal& total = out[std::string(collective_type(profile.names[op->name]))];
    total.min = total.count == 0 ? length(*op) : std::min(total.min, length(*op));
    total.max = std::max(total.max, length(*op));
    ++total.count;
    total.sum += length(*op);
    total.not_under_compute += length(*op) - compute.within(op->begin, op->end);
  }
  return out;
}

DeviceMetrics metrics_of(const Profile& profile, std::uint32_t device, const Ops& ops, const std::vector<Step>& steps, HostTime& host, const Passes& passes) {
  DeviceMetrics m;
  m.device = device;
  const TimedOps all = timed(profile, ops);
  m.whole_window = device_times(all);
  m.tracelens = tracelens_times(all);
  Ops launched;
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(launched), [&](const DeviceOp* op) { return profile.launch_of(*op) != nullptr; });
  if (!launched.empty()) {
    m.launched_only = device_times(timed(profile, launched));
    m.tracelens_launched_only = tracelens_times(timed(profile, launched));
  }
  m.per_cpu_step_window = in_step_windows(all, steps);
  m.per_launching_step = by_launching_step(profile, ops, steps);
  m.streams = streams_of(profile, ops);
  m.ops = totals_of(profile, ops);
  m.comm_by_type = collectives_of(profile, ops);
  m.launches = launches_of(profile, ops);
  m.queues = queues_of(profile, ops);
  m.gaps = find_gaps(profile, device);
  if (m.gaps) m.finer = finer_causes(profile, device, *m.gaps, host);
  m.paths = critical_paths(profile, device, steps, host);
  m.rates = rates_of(profile, device);
  m.passes = pass_totals(profile, device, passes);
  m.steady = steps_on_device(profile, device, passes);
  return m;
}

}  // namespace

Distribution distribution(std::vector<Time> values) {
  Distribution d;
  d.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return d;
  std::sort(values.begin(), values.end());
  const auto quantile = [&](double p) { return values[std::min(values.size() - 1, static_cast<std::size_t>(p * static_cast<double>(values.size())))]; };
  d.min = values.front();
  d.p50 = quantile(0.5);
  d.p90 = quantile(0.9);
  d.p99 = quantile(0.99);
  d.max = values.back();
  for (const Time value : values) d.sum += value;
  return d;
}

std::vector<Step> steps_of(const Profile& profile) {
  std::vector<Step> steps;
  for (const HostOp& op : profile.host_ops) {
    if (is_step(profile.names[op.name])) steps.push_back({profile.names[op.name], {op.begin, op.end}});
  }
  return steps;
}

std::vector<DeviceMetrics> device_metrics(const Profile& profile) {
  std::map<std::string, std::pair<std::uint32_t, Ops>> devices;
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind == DeviceKind::other) continue;
    const std::uint32_t device = profile.streams[op.stream].device;
    auto& [number, ops] = devices[profile.devices[device]];
    number = device;
    ops.push_back(&op);
  }
  const std::vector<Step> steps = steps_of(profile);
  HostTime host(profile);
  const Passes passes(profile);
  std::vector<DeviceMetrics> out;
  for (const auto& [name, device] : devices) out.push_back(metrics_of(profile, device.first, device.second, steps, host, passes));
  return out;
}

}  // namespace stepcast::trace::profile
