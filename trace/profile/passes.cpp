// Test: tests/unit/profile_passes_test.cpp.
#include "trace/profile/passes.hpp"

#include <algorithm>
#include <string_view>

#include "trace/profile/metrics.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

/// Autograd's engine, its nodes (MmBackward0), and ranges that say so ("backward", "backward b3").
bool is_backward(std::string_view name) {
  return name.find("Backward") != std::string_view::npos || name.starts_with("autograd::engine") || name.starts_with("backward");
}

struct HostSpans {
  Spans backward, graph;
};

/// Of one thread: the parts of operators of a forward that lie in its backward.
Spans repeated(const Spans& graph, const Coverage& backward) {
  Spans out;
  for (const Span& op : graph) {
    if (backward.within(op.begin, op.begin + Time(1)) > Time{}) out.push_back(op);
  }
  return out;
}

struct StepEnds {
  std::vector<Step> steps;
  std::vector<Time> ends;  // of what each launched on the device; Time::min(): nothing
};

std::size_t step_at(const std::vector<Step>& steps, Time time) {
  const auto after = std::partition_point(steps.begin(), steps.end(), [time](const Step& step) { return step.time.begin <= time; });
  const auto place = static_cast<std::size_t>(after - steps.begin());
  return place > 0 && time < steps[place - 1].time.end ? place - 1 : steps.size();
}

StepEnds ends_of_steps(const Profile& p, std::uint32_t device) {
  StepEnds out{steps_of(p), {}};
  out.ends.assign(out.steps.size(), Time::min());
  for (const DeviceOp& op : p.device_ops) {
    const HostCall* launch = op.kind == DeviceKind::other || p.streams[op.stream].device != device ? nullptr : p.launch_of(op);
    const std::size_t step = launch ? step_at(out.steps, launch->begin) : out.steps.size();
    if (step < out.steps.size()) out.ends[step] = std::max(out.ends[step], op.end);
  }
  return out;
}

void add(PassTotals& totals, Pass pass, const DeviceOp& op) {
  PassTotal& total = totals[static_cast<std::size_t>(pass)];
  ++total.kernels;
  total.compute += op.end - op.begin;
}

}  // namespace

const char* name(Pass pass) {
  constexpr const char* kNames[kPasses] = {"forward", "recomputation", "backward", "optimizer", "unknown"};
  return kNames[static_cast<std::size_t>(pass)];
}

Passes::Passes(const Profile& profile) {
  std::vector<HostSpans> threads(profile.threads.size());
  Spans optimizer;
  for (const HostOp& op : profile.host_ops) {
    const std::string& name = profile.names[op.name];
    if (op.in_graph) threads[op.thread].graph.push_back({op.begin, op.end});
    else if (is_backward(name)) threads[op.thread].backward.push_back({op.begin, op.end});
    else if (is_optimizer(name)) optimizer.push_back({op.begin, op.end});
  }
  for (HostSpans& spans : threads) {
    Thread thread;
    thread.backward = Coverage(std::move(spans.backward));
    thread.repeated = Coverage(repeated(spans.graph, thread.backward));
    threads_.push_back(std::move(thread));
  }
  optimizer_ = Coverage(std::move(optimizer));
}

Pass Passes::at(std::uint32_t thread, Time at) const {
  const auto within = [at](const Coverage& spans) { return spans.within(at, at + Time(1)) > Time{}; };
  if (within(threads_[thread].repeated)) return Pass::recomputation;
  if (within(threads_[thread].backward)) return Pass::backward;
  return within(optimizer_) ? Pass::optimizer : Pass::forward;
}

Pass Passes::of(const Profile& profile, const DeviceOp& op) const {
  const HostCall* launch = profile.launch_of(op);
  return launch ? at(launch->thread, launch->begin) : Pass::unknown;
}

PassTotals pass_totals(const Profile& profile, std::uint32_t device, const Passes& passes) {
  PassTotals totals{};
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind == DeviceKind::compute && profile.streams[op.stream].device == device) add(totals, passes.of(profile, op), op);
  }
  return totals;
}

StepsOnDevice steps_on_device(const Profile& profile, std::uint32_t device, const Passes& passes) {
  const StepEnds marked = ends_of_steps(profile, device);
  Span window{Time::min(), Time::min()};
  StepsOnDevice out;
  for (const Time end : marked.ends) {
    if (end == Time::min()) continue;
    if (window.begin == Time::min()) window = {end, end};
    else if (end > window.end) window.end = end, ++out.steps;
  }
  TimedOps ops;
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind == DeviceKind::other || profile.streams[op.stream].device != device) continue;
    ops.push_back({{op.begin, op.end}, op.kind, false});
    const bool inside = out.steps == 0 || (op.begin >= window.begin && op.begin < window.end);
    if (inside && op.kind == DeviceKind::compute) add(out.passes, passes.of(profile, op), op);
  }
  out.times = out.steps == 0 ? device_times(ops) : device_times_within(ops, window);
  return out;
}

}  // namespace stepcast::trace::profile
