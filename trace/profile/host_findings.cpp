// The host starves the device. Rules: docs/diagnose.md, "Findings". Test: tests/unit/profile_findings_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "hw_models/text_file.hpp"
#include "trace/profile/finding_rules.hpp"
#include "trace/profile/late_ops.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

constexpr double kLaunchBound = 0.08;  // some launch-bound gaps are in every eager profile
constexpr Time kWarmUpCall = std::chrono::milliseconds(50);
constexpr Time kCopyItself = std::chrono::microseconds(10);  // what an asynchronous copy costs the host
constexpr Time kTinyCopy = std::chrono::microseconds(10);
constexpr std::size_t kManyReads = 20;

std::string gaps_text(const Scene& scene, const CauseSum& sum, const char* what) {
  return fmt::format("{} gaps of the compute stream, {} of {}, {}", sum.count, milliseconds_text(sum.total), milliseconds_text(scene.gap_total()), what);
}

CauseSum sum_of(const Scene& scene, std::initializer_list<Cause> causes) {
  CauseSum sum;
  for (const Cause cause : causes) {
    sum.count += scene.gaps(cause).count;
    sum.total += scene.gaps(cause).total;
  }
  return sum;
}

/// How surely gaps of a cause mean it: half and up, more the larger their part of all gaps.
double confidence_of(const Scene& scene, Time part) {
  const Time all = scene.gap_total();
  return all.count() == 0 ? 0.5 : 0.5 + 0.45 * static_cast<double>(part.count()) / static_cast<double>(all.count());
}

/// Host calls of one kind, but for the first `kept` of each.
Spans calls_of(const Profile& p, CallKind kind, Time kept = {}) {
  Spans spans;
  for (const HostCall& call : p.host_calls) {
    if (call.runtime && call.end - call.begin > kept && kind_of_call(p.names[call.name]) == kind) spans.push_back({call.begin + kept, call.end});
  }
  return spans;
}

Spans loader_ranges(const Profile& p) {
  Spans spans;
  for (const HostOp& op : p.host_ops) {
    if (is_data_loader(p.names[op.name])) spans.push_back({op.begin, op.end});
  }
  return spans;
}

/// From the begin of each gap of a cause to the launch that ended it.
Spans host_time_of(const Scene& scene, Cause cause) {
  Spans spans;
  for (const IdleGap& gap : scene.device.gaps->gaps) {
    if (gap.cause == cause && gap.launch && gap.launch->begin > gap.time.begin) spans.push_back({gap.time.begin, gap.launch->begin});
  }
  return spans;
}

void data_loader(const Scene& scene, std::vector<Finding>& out) {
  const CauseSum sum = scene.gaps(Cause::host_dataloader);
  const double share = scene.share(sum.total);
  if (share < kWorthwhile) return;
  const CallTotal& calls = scene.rank.host.data_loader;
  out.push_back(
      {"starved_data_loader",
       "",
       confidence_of(scene, sum.total),
       share,
       share,
       {gaps_text(scene, sum, "began while the host waited in the data loader"),
        fmt::format("{} calls of the data loader take {}, the longest {}", calls.count, milliseconds_text(calls.total), milliseconds_text(calls.max))},
       "raise DataLoader num_workers and prefetch_factor, keep persistent_workers=True, move decoding and augmentation off the training process or to the "
       "device",
       scene.gain_without(loader_ranges(scene.rank.profile))});
}

void allocator(const Scene& scene, std::vector<Finding>& out) {
  const CauseSum sum = scene.gaps(Cause::host_allocator_call);
  const double share = scene.share(sum.total);
  if (share < kWorthwhile) return;
  Finding f{"allocator_thrash", "", confidence_of(scene, sum.total), share, share, {gaps_text(scene, sum, "spent in allocator calls")}, ""};
  for (const auto& [name, call] : scene.rank.host.stalls) {
    if (kind_of_call(name) == CallKind::allocator) f.evidence.push_back(fmt::format("{} x{}: {}", name, call.count, milliseconds_text(call.total)));
  }
  for (const auto& [device, memory] : scene.rank.host.memory) {
    if (memory.has_totals && memory.reserved_changes > 0)
      f.evidence.push_back(fmt::format("reserved memory of device {} changed {} times", device, memory.reserved_changes));
  }
  f.advice =
      "leave the caching allocator on, free memory so that it stops returning segments (smaller batch, recomputation, no empty_cache in the loop), or set "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
  f.forecast = scene.gain_without(calls_of(scene.rank.profile, CallKind::allocator));
  out.push_back(std::move(f));
}

std::int64_t kernels_of(const DeviceMetrics& device) {
  std::int64_t count = 0;
  for (const auto& [stream, sums] : device.streams) count += sums.ops;
  return count;
}

/// The operators whose launches came too late, those that ended most gap time first.
std::string late_text(const Scene& scene) {
  constexpr std::size_t kShown = 3;
  const Profile& p = scene.rank.profile;
  const auto ops = late_ops(p, *scene.device.gaps, Cause::host_launch_bound);
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, ops.size()); ++i)
    text += (i == 0 ? "most by launches of " : ", ") + printable(p.names[ops[i].first], 60) + " (" + milliseconds_text(ops[i].second) + ")";
  return text.empty() ? "by launches outside of operators" : text;
}

void launches(const Scene& scene, std::vector<Finding>& out) {
  const CauseSum sum = scene.gaps(Cause::host_launch_bound);
  const double share = scene.share(sum.total);
  if (share < kLaunchBound) return;
  const std::int64_t ops = kernels_of(scene.device);
  const Time mean = ops > 0 ? scene.device.whole_window.busy / ops : Time{};
  out.push_back({"launch_bound",
                 "",
                 confidence_of(scene, sum.total),
                 share,
                 share,
                 {gaps_text(scene, sum, "ended with a launch that came too late, the host busy in operators and runtime calls"), late_text(scene),
                  fmt::format("{} device operations of {} on average; a launch call takes {} (median)", ops, milliseconds_text(mean),
                              milliseconds_text(scene.device.launches.launch_call.p50))},
                 "launch less: torch.compile or CUDA graphs, fused optimizers (fused=True or foreach), fused kernels, a larger batch; keep the host free of "
                 "synchronisation"});
}

void outside(const Scene& scene, std::vector<Finding>& out) {
  const CauseSum sum = scene.gaps(Cause::host_outside_torch_ops);
  const double share = scene.share(sum.total);
  if (share < kLaunchBound) return;
  out.push_back({"host_paused_outside_torch",
                 "",
                 confidence_of(scene, sum.total),
                 share,
                 share,
                 {gaps_text(scene, sum, "in which the host ran neither an operator nor a runtime call")},
                 "look for Python between the operators (logging, metrics, sleep, garbage collection: gc.freeze and gc.disable), other processes on the cores, "
                 "and CPU limits; record with "
                 "with_stack=True to see what ran",
                 scene.gain_without(host_time_of(scene, Cause::host_outside_torch_ops))});
}

void copies(const Scene& scene, std::vector<Finding>& out) {
  const CauseSum sum = sum_of(scene, {Cause::host_memcpy_call, Cause::host_sync_on_memcpy, Cause::device_wait_memcpy, Cause::memcpy_running});
  const double share = scene.share(sum.total);
  if (share < kWorthwhile) return;
  out.push_back({"blocking_copies",
                 "",
                 confidence_of(scene, sum.total),
                 share,
                 share,
                 {gaps_text(scene, sum, "held up by a copy")},
                 "pin the host's memory (pin_memory=True) and copy with non_blocking=True on a stream of its own, a batch ahead",
                 scene.gain_without(calls_of(scene.rank.profile, CallKind::copy, kCopyItself), true)});
}

void synchronisation(const Scene& scene, std::vector<Finding>& out) {
  const CauseSum sum = sum_of(scene, {Cause::host_sync, Cause::host_sync_on_comm});
  const double share = scene.share(sum.total);
  if (share < kWorthwhile) return;
  Finding f{"host_synchronisation", "", confidence_of(scene, sum.total), share, share, {gaps_text(scene, sum, "after the host had waited for the device")}, ""};
  for (const auto& [name, call] : scene.rank.host.stalls) {
    if (kind_of_call(name) == CallKind::synchronise) f.evidence.push_back(fmt::format("{} x{}: {}", name, call.count, milliseconds_text(call.total)));
  }
  f.advice =
      "drop torch.cuda.synchronize, .item(), print of tensors and blocking copies from the loop; read losses a step later; FSDP: limit_all_gathers makes the "
      "host wait on purpose";
  f.forecast = scene.gain_without({}, true);
  out.push_back(std::move(f));
}

/// Host time in reads of single values: operators that fetch one, and calls that copy next to nothing from the device.
Spans reads_of(const Profile& p) {
  Spans spans;
  for (const HostOp& op : p.host_ops) {
    if (p.names[op.name] == "aten::_local_scalar_dense") spans.push_back({op.begin, op.end});
  }
  for (const DeviceOp& op : p.device_ops) {
    const HostCall* call = op.kind == DeviceKind::copy && op.end - op.begin < kTinyCopy ? p.launch_of(op) : nullptr;
    if (call && p.names[op.name].find("DtoH") != std::string::npos) spans.push_back({call->begin, call->end});
  }
  return spans;
}

void items(const Scene& scene, std::vector<Finding>& out) {
  Spans spans = reads_of(scene.rank.profile);
  const std::size_t count = spans.size();
  const Time total = interval_sets::length(interval_sets::merge(std::move(spans)));
  const double share = scene.share(total);
  if (count < kManyReads || share < kWorthwhile) return;
  out.push_back(
      {"reads_of_single_values",
       "",
       0.85,
       share,
       0,
       {fmt::format("{} .item() operators and copies of under 10 us from the device take {} of the host's time: each waits for what was launched before", count,
                    milliseconds_text(total))},
       "keep values on the device and read them together, seldom, and after the next step was launched",
       scene.gain_without(reads_of(scene.rank.profile), true)});
}

void warm_up(const Scene& scene, std::vector<Finding>& out) {
  Time total{};
  std::int64_t count = 0;
  for (const HostCall& call : scene.rank.profile.host_calls) {
    const std::string& name = scene.rank.profile.names[call.name];
    if (!call.runtime || name.find("Launch") == std::string::npos || call.end - call.begin < kWarmUpCall) continue;
    ++count;
    total += call.end - call.begin;
  }
  const double share = scene.share(total);
  if (share < kWorthwhile) return;
  out.push_back({"warm_up_recorded",
                 "",
                 0.9,
                 share,
                 0,
                 {fmt::format("{} launch calls of 50 ms and more, {} in all: modules are loaded or kernels chosen in them, which happens once", count,
                              milliseconds_text(total))},
                 "record after some steps: torch.profiler.schedule(wait=..., warmup=..., active=...)"});
}

}  // namespace

void find_host_causes(const Scene& scene, std::vector<Finding>& out) {
  for (const auto rule : {data_loader, allocator, launches, outside, copies, synchronisation, items, warm_up}) rule(scene, out);
}

}  // namespace stepcast::trace::profile
