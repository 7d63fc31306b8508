// What takes the host's lead over the device. Rules: docs/diagnose.md, "Findings". Test: tests/unit/profile_finer_causes_test.cpp.
#include <fmt/format.h>

#include "trace/profile/finding_rules.hpp"

namespace stepcast::trace::profile {

namespace {

CauseSum sum_of(const Scene& scene, std::string_view cause) {
  const auto known = scene.device.finer.by_cause.find(cause);
  return known == scene.device.finer.by_cause.end() ? CauseSum{} : known->second;
}

void add(const Scene& scene, std::string_view cause, const char* finding, const char* evidence, const char* advice, std::vector<Finding>& out) {
  const CauseSum sum = sum_of(scene, cause);
  const double share = scene.share(sum.total);
  if (share < kWorthwhile) return;
  const double part = static_cast<double>(sum.total.count()) / static_cast<double>(scene.gap_total().count());
  out.push_back({finding,
                 "",
                 0.5 + 0.4 * part,
                 share,
                 share,
                 {fmt::format("{} of {} of gaps: {}", milliseconds_text(sum.total), milliseconds_text(scene.gap_total()), evidence)},
                 advice});
}

}  // namespace

void find_lost_lead(const Scene& scene, std::vector<Finding>& out) {
  add(scene, "rate_limiter", "rate_limiter_wait", "FSDP's limiter had held the host back, and its launches came late then",
      "limit_all_gathers=False if memory allows (watch num_alloc_retries), or larger units, so that two of them keep the device busy for longer", out);
  add(scene, "clipping", "blocking_clip",
      "the device waited for gradient clipping: its all-reduce, its launches, or a host that read the norm and lost its lead",
      "clip without reading the norm on the host (error_if_nonfinite=False, log the norm seldom and later), foreach=True", out);
}

}  // namespace stepcast::trace::profile
