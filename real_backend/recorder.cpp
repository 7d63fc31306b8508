// See recorder.hpp.
#include "real_backend/recorder.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace stepcast::real {
namespace {

// Waits that a real host knows, by trace::HostState.
constexpr const char* kWaitNames[] = {"working",         "rate limiter", "synchronize",       "device malloc",
                                      "allocator flush", "data loader",  "launch queue full", "paused"};

}  // namespace

Recorder::Recorder(const program::Program& program, const Clock& clock) : program_(program), clock_(clock) {
  trace_.ranks.emplace_back();
  const auto here = [&] { return static_cast<std::uint32_t>(trace_.names.size()); };
  for (const auto& kernel : program.kernels) {
    trace_.names.push_back(kernel.op);
    trace_.kernels.push_back({kernel.shape, kernel.kernel});
  }
  collective_names_ = here();
  for (const auto& collective : program.collectives) {
    trace_.names.push_back(collective.label);
    trace_.collectives.push_back({collective.shape, collective.label, collective.communicator == program::Communicator::replica});
  }
  mark_names_ = here();
  for (const auto& mark : program.marks) trace_.names.push_back(mark.label);
  wait_names_ = here();
  trace_.names.insert(trace_.names.end(), std::begin(kWaitNames), std::end(kWaitNames));
  for (std::size_t s = 0; s < program::kStreams; ++s) trace_.streams.emplace_back(program::name(static_cast<program::Stream>(s)));
}

void Recorder::enter_step(std::int32_t step) {
  context_ = {.step = step};
  const SimTime now = clock_.now();
  trace_.steps.push_back({now, now, now});
}

void Recorder::leave_step() {
  const SimTime now = clock_.now();
  trace_.steps.back().host_end = now;
  trace::Slice annotation = trace::slice_in(context_, trace::Category::annotation, trace_.steps.back().host_begin, now);
  annotation.unit = -1;
  annotation.name = static_cast<std::uint32_t>(trace_.names.size());
  trace_.names.push_back("ProfilerStep#" + std::to_string(trace_.steps.size() - 1));
  trace_.ranks[0].slices.push_back(annotation);
}

void Recorder::mark(std::uint32_t id) {
  const program::MarkEntry& entry = program_.marks[id];
  const auto phase = [&](trace::Phase opened) { context_.phase = entry.begin ? opened : trace::Phase::none; };
  const SimTime now = clock_.now();
  if (entry.begin) open_.emplace_back(id, now);
  if (!entry.begin && !open_.empty()) {
    trace::Slice annotation = trace::slice_in(context_, trace::Category::annotation, open_.back().second, now);
    annotation.name = mark_names_ + open_.back().first;
    open_.pop_back();
    if (entry.kind != program::MarkKind::step) trace_.ranks[0].slices.push_back(annotation);  // leave_step names it
  }
  switch (entry.kind) {
    case program::MarkKind::step: break;
    case program::MarkKind::forward: phase(trace::Phase::forward); break;
    case program::MarkKind::backward: phase(trace::Phase::backward); break;
    case program::MarkKind::optimizer: phase(trace::Phase::optimizer); break;
    case program::MarkKind::unit: context_.unit = entry.begin ? entry.index : -1; break;
    case program::MarkKind::recompute: context_.recompute = entry.begin; break;
  }
}

trace::Slice Recorder::device_slice(const program::Op& op, SimTime begin) {
  const bool kernel = op.kind == program::OpKind::launch;
  trace::Slice call = trace::slice_in(context_, trace::Category::host_runtime, begin, clock_.now());
  call.name = kernel ? op.id : collective_names_ + op.id;
  call.correlation = ++correlation_;
  trace_.ranks[0].slices.push_back(call);
  trace::Slice work = call;
  work.category = kernel ? trace::Category::kernel : trace::Category::collective;
  work.detail = op.id;
  work.lane = static_cast<std::int16_t>(op.stream);
  return work;
}

void Recorder::host_wait(trace::HostState state, SimTime begin) {
  trace::Slice wait = trace::slice_in(context_, trace::Category::host_wait, begin, clock_.now());
  wait.host_state = state;
  wait.name = wait_names_ + static_cast<std::uint32_t>(state);
  trace_.ranks[0].slices.push_back(wait);
}

void Recorder::memory(std::int64_t delta, std::uint64_t address, const memory::Statistics& statistics) {
  trace_.ranks[0].memory.push_back({clock_.now(), delta, statistics.allocated, statistics.reserved, address});
}

trace::Trace Recorder::take(std::vector<trace::Slice> device) {
  for (const trace::Slice& work : device) {
    if (work.lane != static_cast<std::int16_t>(program::Stream::compute) || work.step >= trace_.steps.size()) continue;
    SimTime& end = trace_.steps[work.step].device_end;
    end = std::max(end, work.end);
  }
  auto& slices = trace_.ranks[0].slices;
  slices.insert(slices.end(), std::make_move_iterator(device.begin()), std::make_move_iterator(device.end()));
  return std::move(trace_);
}

}  // namespace stepcast::real
