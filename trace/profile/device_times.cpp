// Test: tests/unit/profile_metrics_test.cpp.
#include "trace/profile/device_times.hpp"

#include <algorithm>

namespace stepcast::trace::profile {

namespace {

using interval_sets::length, interval_sets::merge, interval_sets::overlap, interval_sets::subtract, interval_sets::unite;

Span extent(const TimedOps& ops) {
  Span all{Time::max(), Time::min()};
  for (const TimedOp& op : ops) all = {std::min(all.begin, op.time.begin), std::max(all.end, op.time.end)};
  return ops.empty() ? Span{} : all;
}

DeviceTimes times(const TimedOps& ops, Time span) {
  const Spans compute = spans_of(ops, DeviceKind::compute), comm = spans_of(ops, DeviceKind::communication);
  const Spans memory = unite(spans_of(ops, DeviceKind::copy), spans_of(ops, DeviceKind::set));
  DeviceTimes t;
  t.span = span;
  t.compute = length(compute);
  t.comm = length(comm);
  t.memory = length(memory);
  const Spans kernels = unite(compute, comm), exposed = subtract(comm, compute);
  t.busy = length(unite(kernels, memory));
  t.idle = span - t.busy;
  t.exposed_comm = length(exposed);
  t.exposed_comm_not_under_compute_or_memory = t.exposed_comm - overlap(exposed, memory);
  t.exposed_memory = t.memory - overlap(memory, kernels);
  for (const TimedOp& op : ops) {
    if (op.kind == DeviceKind::compute || op.kind == DeviceKind::communication) t.kernel_sum += op.time.end - op.time.begin;
  }
  t.device_ops = static_cast<std::int64_t>(ops.size());
  return t;
}

}  // namespace

Spans spans_of(const TimedOps& ops, DeviceKind kind) {
  Spans spans;
  for (const TimedOp& op : ops) {
    if (op.kind == kind) spans.push_back(op.time);
  }
  return merge(std::move(spans));
}

DeviceTimes device_times(const TimedOps& ops) {
  const Span all = extent(ops);
  return times(ops, all.end - all.begin);
}

DeviceTimes device_times_within(const TimedOps& ops, Span window) {
  TimedOps clipped;
  for (const TimedOp& op : ops) {
    const Span part{std::max(op.time.begin, window.begin), std::min(op.time.end, window.end)};
    if (part.begin < part.end) clipped.push_back({part, op.kind, op.nccl});
  }
  return times(clipped, window.end - window.begin);
}

TraceLensTimes tracelens_times(const TimedOps& ops) {
  Spans computing, communicating;
  for (const TimedOp& op : ops) {
    if (op.kind != DeviceKind::copy) (op.nccl ? communicating : computing).push_back(op.time);
  }
  const Spans computation = merge(std::move(computing)), comm = merge(std::move(communicating)), copies = spans_of(ops, DeviceKind::copy);
  const Spans kernels = unite(computation, comm);
  const Span all = extent(ops);
  TraceLensTimes t;
  t.computation = length(computation);
  t.total_comm = length(comm);
  t.total_memcpy = length(copies);
  t.exposed_comm = t.total_comm - overlap(comm, computation);
  t.exposed_memcpy = t.total_memcpy - overlap(copies, kernels);
  t.busy = length(unite(kernels, copies));
  t.total = all.end - all.begin;
  t.idle = t.total - t.busy;
  return t;
}

}  // namespace stepcast::trace::profile
