// What a training step takes at least, in time and in memory: from its program and prices alone, without simulating it. A search may leave out whatever is bounded above what it
// already has. docs/models.md, "Lower bounds of a step"; test: tests/unit/tune_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "hw_models/sim_time.hpp"
#include "program/program.hpp"
#include "sim/simulate.hpp"

namespace stepcast::planner {

/// The work of one step, the last of a program, that has to be done in any order of calls.
struct StepWork {
  std::map<double, SimTime> compute;                             // kernels of the compute stream, alone, by how much a transfer beside them slows them
  std::array<SimTime, program::kCommunicators> communicators{};  // transfers, alone
  /// With `times` times what `larger` has more: steps grow by the same work with every further micro-batch, from the second on.
  [[nodiscard]] StepWork extended(const StepWork& larger, std::int64_t times) const;
};
StepWork work_of(const program::Program& program, const sim::PriceList& prices);

/// From the end of the optimizer before to the end of the step's own: no step with this work takes less. For ranks that are alike, without jitter.
SimTime least_time(const StepWork& work);

/// Kernels of the compute stream that the model's own forward and backward launch, alone: what they take at least under every policy of sharding, if the step has one micro-batch.
SimTime model_time(const program::Program& program, const sim::PriceList& prices);

/// The longest chain of the program's last step, from the end of the optimizer before: no order of events makes it shorter. For ranks that are alike, without jitter.
SimTime critical_path(const program::Program& program, const sim::PriceList& prices);

/// Bytes that are allocated at once, whatever the allocator does.
std::int64_t least_memory(const program::Program& program);
/// Of them activations, what the loss needs, and the input: the same for every policy of sharding.
std::int64_t least_activations(const program::Program& program);

}  // namespace stepcast::planner
