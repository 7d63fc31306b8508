// What one step's window holds, sorted once for the analysis: kernels of the compute stream, other device work, what blocked the host, launches.
// Private to trace/. Definitions: docs/breakdown.md sections 1 and 3. Test: tests/unit/breakdown_test.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/intervals.hpp"
#include "trace/trace.hpp"

namespace stepcast::trace {

inline constexpr std::int16_t kComputeLane = 0;
inline constexpr std::size_t kCollectiveKinds = 3;  // hw::CollectiveKind

/// Time of a host slice during which the host did not issue work.
bool blocks_host(const Slice& slice);

/// Launch calls by correlation. Numbers that rise with time are found without a sort.
class Launches {
 public:
  void add(const Slice& slice) { calls_.push_back(&slice); }
  void finish();
  /// The call that launched `work`, or null where none was recorded.
  [[nodiscard]] const Slice* find(const Slice& work) const;

 private:
  std::vector<const Slice*> calls_;
};

/// Pointers refer to the RankTrace, which must outlive the view.
struct StepView {
  StepView(const Trace& trace, const RankTrace& rank, Interval window);

  Interval window;
  std::vector<const Slice*> compute_lane;  // kernels of the compute stream that touch the window and the first one after it, by begin
  std::vector<const Slice*> elsewhere;     // device work that can hold the compute stream up: other lanes, and collectives on any lane; by end
  std::vector<const Slice*> host_blocks;   // by end
  std::vector<const Slice*> kernels_here;  // kernels of all lanes that touch the window
  Launches launches;
  SimTime launch_latency{};  // from the end of a launch call to the start of its kernel on an idle stream, as seen in this trace

  Intervals kernels, collectives, blocked, data_wait;
  std::array<Intervals, kCollectiveKinds> by_kind;

 private:
  void sort_out(const Trace& trace, const RankTrace& rank);
  void order();
  void measure_latency();
};

/// Slice `work` of `slices` (by end) that ended last, not after `time`; looks at the first `limit` only. Returns `limit` where there is none.
std::size_t last_ended(std::span<const Slice* const> slices, SimTime time, std::size_t limit);

}  // namespace stepcast::trace
