// The rule by which a report says what bounds the step. docs/report.md, "Bound"; test: tests/unit/report_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/report/report.hpp"

namespace stepcast::cli {
namespace {

struct KernelGroup {
  std::string_view bound;
  std::vector<std::string_view> causes;
  double total_s = 0;
  std::string_view largest{};  // cause
  double largest_s = 0;
};

std::array<KernelGroup, 4> groups() {
  return {{{"communication", {"all_gather", "reduce_scatter", "all_reduce"}},
           {"host", {"launch_bound", "launch_latency", "rate_limiter", "synchronize", "launch_queue", "host_pause"}},
           {"data", {"data_loader"}},
           {"memory", {"device_malloc", "allocator_flush"}}}};
}

void add(KernelGroup& group, const GapRow& gap) {
  if (std::find(group.causes.begin(), group.causes.end(), gap.cause) == group.causes.end()) return;
  group.total_s += gap.total_s;
  if (gap.total_s <= group.largest_s) return;
  group.largest = gap.cause;
  group.largest_s = gap.total_s;
}

}  // namespace

void set_bound(Report& report) {
  auto all = groups();
  double idle = 0;
  for (const GapRow& gap : report.gaps) {
    idle += gap.total_s;
    for (KernelGroup& group : all) add(group, gap);
  }
  const KernelGroup& top = *std::max_element(all.begin(), all.end(), [](const KernelGroup& a, const KernelGroup& b) { return a.total_s < b.total_s; });
  const double step = report.step_time_s;
  const auto percent = [&](double part) { return step > 0 ? 100 * part / step : 0; };
  if (step > 0 && top.total_s >= kBoundShare * step) {
    report.bound = top.bound;
    report.bound_reason = fmt::format("the compute stream is idle {:.1f} % of the step for it (most of it: {}, {:.1f} %)", percent(top.total_s), top.largest,
                                      percent(top.largest_s));
    return;
  }
  report.bound = "compute";
  report.bound_reason = fmt::format("the compute stream is busy {:.1f} % of the step", percent(step - idle));
  if (top.total_s > 0) report.bound_reason += fmt::format("; the largest idle part is {}, {:.1f} %", top.bound, percent(top.total_s));
}

}  // namespace stepcast::cli
