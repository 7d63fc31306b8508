// Turns what one rank does into a trace: slices of the host and the streams, and memory samples, for the recorded steps only.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.hpp"
#include "sim/rank.hpp"
#include "sim/simulate.hpp"
#include "trace/trace.hpp"

namespace stepcast::sim {

class Recorder {
 public:
  Recorder(const program::Program& program, const Options& options);

  /// Step, phase and unit of the calls that the host makes now; follows the marks.
  void enter_step(std::int32_t step, SimTime now);
  void leave_step(SimTime now);
  void mark(const program::MarkEntry& entry, SimTime now);
  [[nodiscard]] std::uint32_t context() const { return static_cast<std::uint32_t>(contexts_.size() - 1); }
  [[nodiscard]] bool on() const { return contexts_.back().step >= options_.record_from_step; }

  /// Host slices. A launch gets a correlation number, which it returns (0 when this step is not recorded).
  std::uint32_t host_call(const program::Op& op, SimTime begin, SimTime end, SimTime driver);
  void host_work(const program::Op& op, SimTime begin, SimTime end);
  void host_wait(trace::HostState state, SimTime begin, SimTime end);

  void device(const program::Op& op, const Item& item, program::Stream stream, SimTime begin, SimTime end);
  void memory(SimTime now, std::int64_t delta, std::uint64_t address, program::Owner owner, const memory::Statistics& statistics) {
    if (!options_.record_host) return;
    trace::RankTrace& rank = trace_.ranks[0];
    if (on()) rank.memory.push_back({now, delta, statistics.allocated, statistics.reserved, address, static_cast<std::uint32_t>(owner)});
    else rank.held_before[static_cast<std::size_t>(owner)] += delta;
  }
  void step_end(std::uint32_t step, SimTime now);
  trace::Trace take() { return std::move(trace_); }

 private:
  void name_everything();

  const program::Program& program_;
  const Options& options_;
  trace::Trace trace_;
  std::vector<trace::Context> contexts_{trace::Context{}};
  std::vector<std::pair<std::uint32_t, SimTime>> open_marks_;
  std::uint32_t collective_names_ = 0, work_names_ = 0, wait_names_ = 0, mark_names_ = 0, driver_name_ = 0;
  std::uint32_t correlation_ = 0;
};

}  // namespace stepcast::sim
