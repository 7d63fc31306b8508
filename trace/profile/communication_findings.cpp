// Communication that nothing hides. Rules: docs/diagnose.md, "Findings". Test: tests/unit/profile_findings_test.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "trace/profile/coverage.hpp"
#include "trace/profile/finding_rules.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

constexpr double kExposed = 0.05;                        // of the window
constexpr Time kSmall = std::chrono::microseconds(200);  // latency, not bandwidth, makes such a collective's time
constexpr std::int64_t kMany = 50;

/// When compute kernels run on the device.
Spans compute_of(const Scene& scene) {
  const Profile& p = scene.rank.profile;
  Spans compute;
  for (const DeviceOp& op : p.device_ops) {
    if (op.kind == DeviceKind::compute && p.streams[op.stream].device == scene.device.device) compute.push_back({op.begin, op.end});
  }
  return interval_sets::merge(std::move(compute));
}

/// All-gathers that begin when no compute kernel runs, and those of them that the host launched only then.
struct AllGathers {
  std::int64_t count = 0, on_idle = 0, issued_late = 0;
};

AllGathers all_gathers_of(const Scene& scene) {
  const Profile& p = scene.rank.profile;
  const Spans busy = compute_of(scene);
  AllGathers out;
  for (const DeviceOp& op : p.device_ops) {
    if (op.kind != DeviceKind::communication || p.streams[op.stream].device != scene.device.device || collective_type(p.names[op.name]) != "allgather")
      continue;
    ++out.count;
    const auto next = std::partition_point(busy.begin(), busy.end(), [&](const Span& span) { return span.begin <= op.begin; });
    if (next == busy.begin()) continue;
    const Time ended = (next - 1)->end;
    if (ended > op.begin) continue;
    ++out.on_idle;
    const HostCall* call = p.launch_of(op);
    out.issued_late += call && call->begin > ended ? 1 : 0;
  }
  return out;
}

void all_gathers(const Scene& scene, std::vector<Finding>& out) {
  const auto type = scene.device.comm_by_type.find("allgather");
  if (type == scene.device.comm_by_type.end()) return;
  const CollectiveTotal& total = type->second;
  const double share = scene.share(total.not_under_compute);
  if (share < kExposed || ratio(total.not_under_compute, total.sum) < 0.5) return;
  const AllGathers gathers = all_gathers_of(scene);
  const bool serial = 2 * gathers.on_idle >= gathers.count;
  out.push_back({"serialised_all_gathers",
                 "",
                 serial ? 0.9 : 0.6,
                 share,
                 share,
                 {fmt::format("{} all-gathers take {}, {} of it with no compute kernel beside them", total.count, milliseconds_text(total.sum),
                              milliseconds_text(total.not_under_compute)),
                  fmt::format("{} of {} begin on an idle compute stream; {} of these were launched only after the kernel before them had ended",
                              gathers.on_idle, gathers.count, gathers.issued_late)},
                 "prefetch: FSDP backward_prefetch=BACKWARD_PRE, forward_prefetch=True, limit_all_gathers=True only where memory demands it; fully_shard: "
                 "set_modules_to_forward_prefetch and "
                 "set_modules_to_backward_prefetch; larger units; reshard_after_forward=False if memory allows"});
}

void exposed(const Scene& scene, std::vector<Finding>& out) {
  const DeviceTimes& t = scene.device.whole_window;
  const double share = scene.share(t.exposed_comm);
  if (share < kExposed) return;
  Finding f{"exposed_communication",
            "",
            0.9,
            share,
            share,
            {fmt::format("communication {}, {} of it with no compute kernel beside it ({} overlapped)", milliseconds_text(t.comm),
                         milliseconds_text(t.exposed_comm), percent_text(1 - ratio(t.exposed_comm, t.comm)))},
            "overlap it with compute (DDP buckets, FSDP prefetch, asynchronous tensor parallelism), communicate less (bf16, gradient accumulation with "
            "no_sync, hybrid sharding), "
            "and check which ranks arrive late before blaming the links"};
  for (const auto& [type, c] : scene.device.comm_by_type)
    f.evidence.push_back(fmt::format("{} x{}: {}, {} exposed", type, c.count, milliseconds_text(c.sum), milliseconds_text(c.not_under_compute)));
  out.push_back(std::move(f));
}

void small_messages(const Scene& scene, std::vector<Finding>& out) {
  const Profile& p = scene.rank.profile;
  std::int64_t count = 0, small = 0;
  Time time{};
  const Coverage compute(compute_of(scene));
  for (const DeviceOp& op : p.device_ops) {
    if (op.kind != DeviceKind::communication || p.streams[op.stream].device != scene.device.device) continue;
    ++count;
    if (op.end - op.begin > kSmall) continue;
    ++small;
    time += op.end - op.begin - compute.within(op.begin, op.end);
  }
  const double share = scene.share(time);
  if (small < kMany || 2 * small < count || share < 0.02) return;
  out.push_back({"small_message_collectives",
                 "",
                 0.7,
                 share,
                 share,
                 {fmt::format("{} of {} collectives take 200 us or less; {} of their time is exposed", small, count, milliseconds_text(time))},
                 "join them: larger DDP buckets (bucket_cap_mb), coarser FSDP units, one flat tensor instead of many, all_reduce_coalesced"});
}

}  // namespace

void find_communication_causes(const Scene& scene, std::vector<Finding>& out) {
  for (const auto rule : {all_gathers, exposed, small_messages}) rule(scene, out);
}

}  // namespace stepcast::trace::profile
