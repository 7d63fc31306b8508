// See bounds.hpp.
#include "planner/bounds.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace stepcast::planner {
namespace {

using program::Op;
using program::OpKind;

/// Time since the end of the optimizer before; `kFree`: does not depend on it.
using Reached = std::int64_t;
constexpr Reached kFree = std::numeric_limits<Reached>::min();

Reached after(Reached reached, SimTime time) { return reached == kFree ? kFree : reached + time.count(); }

/// Longest path through one step. The host makes calls in the order of the program, a stream and a communicator work in the order of the calls, waits mean the record before
/// them: with the order given, a longer piece of work ends nothing earlier. All work at its speed alone.
class CriticalPath {
 public:
  CriticalPath(const program::Program& program, const sim::PriceList& prices) : program_(program), prices_(prices), events_(program.events.size(), kFree) {
    streams_.fill(kFree);
    communicators_.fill(kFree);
    streams_[static_cast<std::size_t>(program::Stream::compute)] = 0;
  }

  SimTime run() {
    for (const Op& op : program_.slice(program_.steps.back())) take(op);
    return SimTime(std::max<Reached>(0, streams_[static_cast<std::size_t>(program::Stream::compute)]));
  }

 private:
  void take(const Op& op) {
    host_ = after(host_, sim::host_price(prices_, op));
    Reached& stream = streams_[static_cast<std::size_t>(op.stream)];
    switch (op.kind) {
      case OpKind::launch: stream = after(std::max(stream, after(host_, prices_.launch_latency)), prices_.kernels[op.id].alone); break;
      case OpKind::collective: transfer(op, stream); break;
      case OpKind::record: events_[op.id] = stream; break;
      case OpKind::wait: stream = std::max(stream, events_[op.id]); break;
      case OpKind::host_wait: host_ = std::max(host_, events_[op.id]); break;
      default: break;
    }
  }

  void transfer(const Op& op, Reached& stream) {
    Reached& communicator = communicators_[static_cast<std::size_t>(program_.collectives[op.id].communicator)];
    stream = communicator = after(std::max({stream, communicator, after(host_, prices_.launch_latency)}), prices_.collectives[op.id].alone);
  }

  const program::Program& program_;
  const sim::PriceList& prices_;
  std::vector<Reached> events_;
  std::array<Reached, program::kStreams> streams_{};
  std::array<Reached, program::kCommunicators> communicators_{};
  Reached host_ = kFree;
};

/// A kernel of the model's forward or backward; those of FSDP and the optimizer belong to other work. A memory-bound one that touches gradients may be FSDP's: autograd's copy
/// into the flat gradient, of which there are as many as units.
bool is_of_model(const program::Program& program, const Op& op) {
  const bool work = op.work == hw::HostWork::op_forward || op.work == hw::HostWork::op_backward || op.work == hw::HostWork::op_compiled;
  if (!work || program.kernels[op.id].shape.kind != hw::KernelKind::memory_bound) return work;
  const auto operands = program.operands_of(op);
  return std::none_of(operands.begin(), operands.end(),
                      [&](const program::Operand& operand) { return program.buffers[operand.buffer].owner == program::Owner::gradients; });
}

/// Every duration is rounded to a picosecond where the simulation changes a speed; sums of those differ by less than this from the exact ones.
SimTime less_rounding(SimTime time) { return time - to_sim_time(to_seconds(time) * 1e-9); }

}  // namespace

StepWork work_of(const program::Program& program, const sim::PriceList& prices) {
  StepWork work;
  for (const Op& op : program.slice(program.steps.back())) {
    if (op.kind == OpKind::collective) work.communicators[static_cast<std::size_t>(program.collectives[op.id].communicator)] += prices.collectives[op.id].alone;
    if (op.kind == OpKind::launch && op.stream == program::Stream::compute) work.compute[prices.kernels[op.id].nccl_slowdown] += prices.kernels[op.id].alone;
  }
  return work;
}

StepWork StepWork::extended(const StepWork& larger, std::int64_t times) const {
  StepWork work = larger;
  for (auto& [slowdown, time] : work.compute) {
    const auto found = compute.find(slowdown);
    time += (time - (found == compute.end() ? SimTime{} : found->second)) * times;
  }
  for (std::size_t c = 0; c < communicators.size(); ++c) work.communicators[c] += (work.communicators[c] - communicators[c]) * times;
  return work;
}

/// Kernels of the compute stream run one after the other, those beside a transfer (1 + s) times as long. Least is lost where the transfers lie beside the kernels with the
/// smallest s: d of such kernels covers d (1 + s) of transfer and loses d s.
SimTime least_time(const StepWork& work) {
  const SimTime communication = *std::max_element(work.communicators.begin(), work.communicators.end());
  SimTime total{};
  Seconds left = to_seconds(communication), lost;
  for (const auto& [slowdown, alone] : work.compute) {
    const Seconds covered = std::min(left, to_seconds(alone) * (1 + slowdown));
    total += alone;
    lost = lost + covered * (slowdown / (1 + slowdown));
    left = left - covered;
  }
  return less_rounding(total + to_sim_time(lost + left));
}

SimTime model_time(const program::Program& program, const sim::PriceList& prices) {
  SimTime total{};
  for (const Op& op : program.slice(program.steps.back())) {
    if (op.kind == OpKind::launch && op.stream == program::Stream::compute && is_of_model(program, op)) total += prices.kernels[op.id].alone;
  }
  return less_rounding(total);
}

SimTime critical_path(const program::Program& program, const sim::PriceList& prices) { return less_rounding(CriticalPath(program, prices).run()); }

namespace {

/// Frees take effect when the host makes them or later, so what the host has asked for and not yet given back is held at least.
template <class Counts>
std::int64_t held_at_once(const program::Program& program, const Counts& counts) {
  std::int64_t held = 0, most = 0;
  const auto walk = [&](program::Range range) {
    for (const Op& op : program.slice(range)) {
      if ((op.kind != OpKind::alloc && op.kind != OpKind::free) || !counts(program.buffers[op.id].owner)) continue;
      held += op.kind == OpKind::alloc ? program.buffers[op.id].bytes : -program.buffers[op.id].bytes;
      most = std::max(most, held);
    }
  };
  walk(program.setup);
  for (const program::Range step : program.steps) walk(step);
  return most;
}

}  // namespace

std::int64_t least_memory(const program::Program& program) {
  return held_at_once(program, [](program::Owner) { return true; });
}

std::int64_t least_activations(const program::Program& program) {
  return held_at_once(
      program, [](program::Owner owner) { return owner == program::Owner::activations || owner == program::Owner::loss || owner == program::Owner::input; });
}

}  // namespace stepcast::planner
