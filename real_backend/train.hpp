// A training job: all ranks of a program, run for real. docs/real_backend.md; test: tests/unit/train_test.cpp, tests/property/train_grid_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "program/program.hpp"
#include "real_backend/driver.hpp"
#include "real_backend/launch/peers.hpp"
#include "real_backend/memory.hpp"
#include "real_backend/rank_result.hpp"
#include "real_backend/training.hpp"
#include "trace/trace.hpp"

namespace stepcast::real {

struct JobSettings {
  Training training;  // `ranks` of it are the job's
  MemoryLimits memory;
  double deadline_s = 60;                                               // without the end of a kernel on any rank
  std::function<void(std::int32_t rank, std::int32_t step)> on_step{};  // called on a rank's compute stream when it has done a step; may be empty
  std::int32_t traced_ranks = 1;                                        // the first so many have a trace
  std::uint64_t identity = 0;                                           // of several processes: the same on all if they run the same thing
  std::function<std::string()> ended_by{};                              // asked again and again: why the job is to end now, or nothing; may be empty
};

/// Of all elements of one parameter after the last step.
struct ParameterSummary {
  std::string name;
  double sum = 0, norm = 0;
};

struct JobResult {
  std::vector<std::string> failures;  // causes, one line each; empty: all went well
  bool out_of_memory = false;
  std::vector<StepMetrics> steps;  // of the whole global batch; after a failure those that all ranks had done
  std::vector<ParameterSummary> parameters;
  MemoryPeaks memory;  // of the first rank
  trace::Trace trace;  // of the traced ranks
};

/// Runs all steps of a program of native kernels, each rank's host a thread of this process. Where a rank's kernel doesn't return within the deadline and a second more, its
/// threads are left behind.
JobResult train(const program::Program& program, const JobSettings& settings, const MakeDriver& make_driver);
/// The same on several processes, of which each has one rank. The result is whole on the first alone. Throws JobEnded on another if the first has given it up.
JobResult train(const program::Program& program, const JobSettings& settings, const MakeDriver& make_driver, Peers& peers);
/// On the host driver.
JobResult train_on_host(const program::Program& program, const JobSettings& settings);

}  // namespace stepcast::real
