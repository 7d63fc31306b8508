// One analysis for every trace: where a step's time went on one rank. Works on interval unions, never on sums of overlapping slices.
// Definitions: docs/breakdown.md. Test: tests/unit/breakdown_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace stepcast::trace {

/// Why the compute stream was idle; docs/breakdown.md section 4 has the rule of each. `unexplained` only for time that no rule explains.
enum class GapCause : std::uint8_t {
  all_gather,  // collectives: it waited for one, or the host did in its place
  reduce_scatter,
  all_reduce,
  other_stream,  // it waited for a kernel of another stream
  launch_bound,  // the host was busy and late
  rate_limiter,  // the host was late because it blocked
  device_malloc,
  allocator_flush,
  data_loader,
  synchronize,
  launch_queue,
  host_pause,      // the host thread did not run: a collection of garbage, another process
  launch_latency,  // launched in time, nothing to wait for, at most 10 us
  unexplained,
  count_
};
const char* name(GapCause cause);

/// A piece of an idle interval of the compute stream; a gap with several causes is several pieces that touch.
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
/// compute + exposed + idle = span exactly. The phases cut the window into parts, so each field of the phases sums to that of the total.
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
  struct KernelTotal {
    std::string name;
    std::int64_t count = 0;
    SimTime total{};
  };
  std::vector<KernelTotal> kernels;  // longest first; time within the window, summed over streams
};

/// Breakdown of step `step` (0-based) of one rank. Throws std::out_of_range for a step that was not recorded, or for a slice whose `detail` has no entry.
/// Host causes need host slices: a trace recorded without them leaves such gaps unexplained.
Breakdown break_down(const Trace& trace, const RankTrace& rank, int step);
/// Mean of consecutive steps from `first` on: times and counts divided by their number, the gaps of all.
Breakdown mean_breakdown(const Trace& trace, const RankTrace& rank, int first, int count);

}  // namespace stepcast::trace
