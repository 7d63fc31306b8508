// One analysis for every trace: where a step's time went on one rank. Works on interval unions, never on sums of overlapping slices.
// Definitions: docs/models.md, "Breakdown". Test: tests/unit/breakdown_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace stepcast::trace {

/// Why the compute stream was idle. `none_` only for time that no rule explains.
enum class GapCause : std::uint8_t {
  all_gather, reduce_scatter, all_reduce, other_stream,
  launch_bound, rate_limiter, device_malloc, allocator_flush, data_loader, synchronize, launch_latency, unexplained, count_
};
const char* name(GapCause cause);

struct Gap {
  SimTime begin{}, end{};
  GapCause cause = GapCause::unexplained;
  std::string before;  // kernel that ended the gap
  std::int32_t unit = -1;
  Phase phase = Phase::none;
};

struct CauseTotal {
  std::int64_t count = 0;
  SimTime total{};
};

/// Times of one phase or of the whole window; compute = union of kernels on all streams, exposed = collectives with no kernel beside them.
struct Times {
  SimTime span{}, compute{}, collective{}, exposed{}, idle{}, host_blocked{}, data_wait{};
};

struct Breakdown {
  SimTime begin{}, end{};  // window: from the end of the optimizer of the step before to that of this step
  Times total;
  std::array<Times, 4> phases{};  // by Phase
  std::vector<Gap> gaps;          // of the compute stream, in time order
  std::array<CauseTotal, static_cast<std::size_t>(GapCause::count_)> causes{};
  std::array<SimTime, 3> exposed_by_kind{};  // by hw::CollectiveKind
  struct KernelTotal { std::string name; std::int64_t count = 0; SimTime total{}; };
  std::vector<KernelTotal> kernels;  // longest first
};

/// Breakdown of step `step` (0-based, must be recorded) of one rank.
Breakdown break_down(const Trace& trace, const RankTrace& rank, int step);

}  // namespace stepcast::trace
