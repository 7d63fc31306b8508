// See executor.hpp.
#include "real_backend/executor.hpp"

#include <stdexcept>
#include <utility>

namespace stepcast::real {

Executor::Executor(const program::Program& program, Device& device, const Clock& clock, const MemoryLimits& limits, std::int32_t rank)
    : program_(program), device_(device), clock_(clock), rank_(rank), memory_(program, device, limits), recorder_(program, clock) {}

void Executor::setup() { run(program_.setup); }

void Executor::step(std::int32_t number) {
  moment_ = {number, -1};
  recorder_.enter_step(number);
  run(program_.steps[static_cast<std::size_t>(number)]);
  recorder_.leave_step();
}

void Executor::run(program::Range range) {
  for (const program::Op& op : program_.slice(range)) call(op);
}

void Executor::call(const program::Op& op) {
  switch (op.kind) {
    case program::OpKind::launch: return launch(op);
    case program::OpKind::collective: return collective(op);
    case program::OpKind::record: return device_.record(op.id, op.stream);
    case program::OpKind::wait: return device_.wait(op.stream, op.id);
    case program::OpKind::host_wait: return host_wait(op);
    case program::OpKind::alloc: return alloc(op);
    case program::OpKind::free: return free(op);
    case program::OpKind::record_stream: return memory_.record_stream(op.id, op.stream);
    case program::OpKind::host_work: return;  // what the host does here is this walk itself
    case program::OpKind::next_batch: ++moment_.micro_batch; return;
    case program::OpKind::mark: return recorder_.mark(op.id);
  }
}

std::byte* Executor::place(const program::Part& part) const {
  if (part.buffer == program::kNoPart) return nullptr;
  const std::int64_t begin = part.begin + part.per_rank * (rank_ % part.group);
  return memory_.at(part.buffer) + begin * hw::bytes_per_element(part.dtype);
}

void Executor::launch(const program::Op& op) {
  if (op.count == 0) throw std::logic_error("kernel \"" + program_.kernels[op.id].op + "\" does not say what it computes");
  const SimTime begin = clock_.now();
  const program::Call& call = program_.calls[op.count - 1];
  KernelTask task{&call, {}, moment_, {}};
  task.parts.reserve(call.parts.size());
  for (const program::Part& part : call.parts) task.parts.push_back(place(part));
  task.slice = recorder_.device_slice(op, begin);
  device_.launch(op.stream, std::move(task));
}

/// With one tensor, an all-gather's input is this rank's part of it.
void Executor::collective(const program::Op& op) {
  const SimTime begin = clock_.now();
  const program::CollectiveEntry& entry = program_.collectives[op.id];
  const auto operands = program_.operands_of(op);
  CollectiveTask task{&entry, memory_.at(operands.front().buffer), memory_.at(operands.back().buffer), {}};
  const std::int32_t ranks = entry.shape.group.ranks();
  if (operands.size() == 1 && entry.shape.kind == hw::CollectiveKind::all_gather) task.in += entry.shape.bytes / ranks * (rank_ % ranks);
  task.slice = recorder_.device_slice(op, begin);
  device_.collective(op.stream, task);
}

void Executor::host_wait(const program::Op& op) {
  const SimTime begin = clock_.now();
  device_.host_wait(op.id);
  const bool limiter = op.count == static_cast<std::uint32_t>(program::WaitReason::rate_limiter);
  recorder_.host_wait(limiter ? trace::HostState::rate_limiter : trace::HostState::synchronize, begin);
}

void Executor::alloc(const program::Op& op) {
  memory_.alloc(op.id, op.stream);
  const std::int64_t bytes = memory_.bytes(op.id);
  recorder_.memory(bytes, bytes > 0 ? memory_.address(op.id) : 0, memory_.statistics());
}

void Executor::free(const program::Op& op) {
  const std::int64_t bytes = memory_.bytes(op.id);
  const std::uint64_t address = bytes > 0 ? memory_.address(op.id) : 0;
  memory_.free(op.id);
  recorder_.memory(-bytes, address, memory_.statistics());
}

}  // namespace stepcast::real
