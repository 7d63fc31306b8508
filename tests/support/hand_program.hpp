// Programs written by hand for tests of executors: a few kernels, collectives and events with given prices.
#pragma once

#include <string>

#include "program/program.hpp"
#include "sim/simulate.hpp"

namespace stepcast::test {

using program::Op;
using program::OpKind;
using program::Stream;

/// End of the last step.
inline std::int64_t end_ns(const sim::Result& result) { return result.step_end.back().count() / 1000; }

/// Builds one step op by op; prices go into `prices` as the entries are made. Times in nanoseconds.
struct HandProgram {
  program::Program program;
  sim::PriceList prices;

  static SimTime ns(std::int64_t nanoseconds) { return SimTime(nanoseconds * 1000); }

  HandProgram& host_costs(std::int64_t kernel_ns, std::int64_t collective_ns) {
    prices.host[static_cast<std::size_t>(hw::HostWork::op_forward)] = ns(kernel_ns);
    prices.host[static_cast<std::size_t>(hw::HostWork::collective_call)] = ns(collective_ns);
    return *this;
  }
  std::uint32_t kernel(std::int64_t duration_ns, double slowdown = 0, double dram = 0) {
    program.kernels.push_back({{}, "op" + std::to_string(program.kernels.size()), "kernel"});
    prices.kernels.push_back({ns(duration_ns), slowdown, dram, 0});
    return static_cast<std::uint32_t>(program.kernels.size() - 1);
  }
  std::uint32_t collective(std::int64_t duration_ns, std::int32_t ranks, program::Communicator communicator = program::Communicator::shard) {
    program.collectives.push_back({{hw::CollectiveKind::all_gather, hw::Dtype::bf16, 1 << 20, {ranks, 1}}, communicator, false, "all_gather"});
    prices.collectives.push_back({ns(duration_ns), 1, 0, 0});
    return static_cast<std::uint32_t>(program.collectives.size() - 1);
  }
  std::uint32_t buffer(std::int64_t bytes) {
    program.buffers.push_back({bytes, program::Owner::activations, "buffer" + std::to_string(program.buffers.size())});
    return static_cast<std::uint32_t>(program.buffers.size() - 1);
  }
  std::uint32_t event() {
    program.events.push_back({"event" + std::to_string(program.events.size())});
    return static_cast<std::uint32_t>(program.events.size() - 1);
  }
  HandProgram& add(OpKind kind, std::uint32_t id, Stream stream = Stream::compute, std::uint32_t count = 0) {
    Op op;
    op.kind = kind;
    op.id = id;
    op.stream = stream;
    op.count = count;
    if (kind == OpKind::launch) op.work = hw::HostWork::op_forward;
    program.ops.push_back(op);
    return *this;
  }
  /// Ends the step; all ops since the last end belong to it.
  HandProgram& end_step() {
    const std::uint32_t begin = program.steps.empty() ? 0 : program.steps.back().end;
    program.steps.push_back({begin, static_cast<std::uint32_t>(program.ops.size())});
    return *this;
  }
  [[nodiscard]] sim::Result run(sim::Options options = {}) const {
    options.memory_limit = options.pool_bytes > 0;
    return sim::simulate(program, prices, options);
  }
};

}  // namespace stepcast::test
