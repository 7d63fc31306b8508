// What the order in which the host issued gathers, reductions and computation says about prefetching and resharding. Private to cli/diagnose.
// docs/diagnose.md, "From a trace to a scenario". Test: tests/unit/inference_test.cpp.
#pragma once

#include <cstdint>
#include <optional>

#include "trace/profile/workload.hpp"

namespace stepcast::cli {

struct IssueOrder {
  double forward_gathers = 0, backward_gathers = 0, reductions = 0, all_reduces = 0;  // per forward; all-reduces of gradients alone
  double forward_all_reduces = 0;                                                     // of results, as tensor parallelism has them
  std::int64_t before_first = 0;                                                      // gathers that the last forward issues before it computes
  std::int64_t lead = 0;                               // most gathers that the last backward had issued ahead of those whose gradients it was at
  bool before_computation = false;                     // the gather that leads comes before the computation of the unit before it, not behind it
  std::int64_t forward_ranks = 0, backward_ranks = 0;  // of the groups that gather
  std::optional<hw::Dtype> gathered, reduced;
};
IssueOrder issue_order(const trace::profile::Workload& work, double forwards);

}  // namespace stepcast::cli
