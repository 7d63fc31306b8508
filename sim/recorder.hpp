// Turns what ranks do into a trace: slices of the host and the streams, and memory samples, for the recorded ranks and steps only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "program/program.hpp"
#include "sim/rank.hpp"
#include "sim/simulate.hpp"
#include "trace/trace.hpp"

namespace stepcast::sim {

/// What the recorded ranks share: the trace, where its names begin, the numbers of launches and of steps' names.
class Recording {
 public:
  Recording(const program::Program& program, const Options& options);
  trace::Trace take() { return std::move(trace_); }
  void step_end(std::uint32_t step, SimTime now);

 private:
  friend class Recorder;
  void name_everything();
  [[nodiscard]] std::uint32_t name_of_step(std::size_t step);

  const program::Program& program_;
  const Options& options_;
  trace::Trace trace_;
  std::vector<std::uint32_t> step_names_;  // ProfilerStep#n, by number; kUnnamed until a rank has ended the step
  std::uint32_t collective_names_ = 0, work_names_ = 0, wait_names_ = 0, mark_names_ = 0, driver_name_ = 0;
  std::uint32_t correlation_ = 0;
};

class Recorder {
 public:
  /// `rank`: one of the first Options::recorded_ranks.
  Recorder(Recording& recording, std::uint32_t rank);

  /// Step, phase and unit of the calls that the host makes now; follows the marks.
  void enter_step(std::int32_t step, SimTime now);
  void leave_step(SimTime now);
  void mark(const program::MarkEntry& entry, SimTime now);
  [[nodiscard]] std::uint32_t context() const { return static_cast<std::uint32_t>(contexts_.size() - 1); }
  [[nodiscard]] bool on() const { return contexts_.back().step >= all_.options_.record_from_step; }

  /// Host slices. A launch gets a correlation number, which it returns (0 when this step is not recorded).
  std::uint32_t host_call(const program::Op& op, SimTime begin, SimTime end, SimTime driver);
  void host_work(const program::Op& op, SimTime begin, SimTime end);
  void host_wait(trace::HostState state, SimTime begin, SimTime end);

  void device(const program::Op& op, const Item& item, program::Stream stream, SimTime begin, SimTime end);
  void memory(SimTime now, std::int64_t delta, std::uint64_t address, program::Owner owner, const memory::Statistics& statistics) {
    if (!all_.options_.record_host) return;
    if (on()) own_.memory.push_back({now, delta, statistics.allocated, statistics.reserved, address, static_cast<std::uint32_t>(owner)});
    else own_.held_before[static_cast<std::size_t>(owner)] += delta;
  }

 private:
  Recording& all_;
  trace::RankTrace& own_;
  std::vector<trace::Context> contexts_{trace::Context{}};
  std::vector<std::pair<std::uint32_t, SimTime>> open_marks_;
  SimTime step_begin_{};
};

}  // namespace stepcast::sim
