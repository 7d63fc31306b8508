// Kernels that could be others, or faster. Rules: docs/diagnose.md, "Findings". Test: tests/unit/profile_findings_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "trace/profile/coverage.hpp"
#include "trace/profile/finding_rules.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

constexpr double kWorthwhileKernels = 0.02;  // of the window
constexpr double kRecomputed = 0.03;         // of the window
constexpr std::size_t kEnough = 8;           // kernels of a name on either side before they are compared

/// Batched products with a softmax kernel between them, and no fused attention kernel.
void unfused_attention(const Scene& scene, std::vector<Finding>& out) {
  Time softmax{};
  std::int64_t count = 0;
  for (const NamedTotal& op : scene.device.ops) {
    for (const std::string_view fused : {"flash", "fmha", "Fmha", "sdpa", "attention_forward", "attention_backward"}) {
      if (contains(op.name, fused)) return;
    }
    const bool of_loss = contains(op.name, "LogSoftmax") || contains(op.name, "log_softmax") || contains(op.name, "cross_entropy");
    if (of_loss || (!contains(op.name, "softmax") && !contains(op.name, "SoftMax") && !contains(op.name, "Softmax"))) continue;
    softmax += op.total;
    count += op.count;
  }
  std::int64_t products = 0;
  const Profile& p = scene.rank.profile;
  for (const HostOp& op : p.host_ops) products += p.names[op.name] == "aten::bmm" || p.names[op.name] == "aten::baddbmm" ? 1 : 0;
  const double share = scene.share(softmax);
  if (share < kWorthwhileKernels || 2 * count > 3 * products) return;
  out.push_back({"unfused_attention",
                 "",
                 0.75,
                 share,
                 share,
                 {fmt::format("{} softmax kernels take {} between {} batched products, and there is no fused attention kernel", count,
                              milliseconds_text(softmax), products)},
                 "torch.nn.functional.scaled_dot_product_attention or FlashAttention (attn_implementation=\"flash_attention_2\" or \"sdpa\")"});
}

/// Nearly all of one length: then one name means one shape.
bool alike(const Distribution& d) { return 5 * d.p90 <= 6 * d.p50; }

/// Kernels of one name beside communication, and apart from it.
struct Sides {
  std::vector<Time> apart, beside;
};

/// Compute kernels of one name take longer beside communication than apart from it.
void contention(const Scene& scene, std::vector<Finding>& out) {
  const Profile& p = scene.rank.profile;
  Spans comm;
  for (const DeviceOp& op : p.device_ops) {
    if (op.kind == DeviceKind::communication && p.streams[op.stream].device == scene.device.device) comm.push_back({op.begin, op.end});
  }
  if (comm.empty()) return;
  const Coverage communication(std::move(comm));
  std::map<std::uint32_t, Sides> names;
  for (const DeviceOp& op : p.device_ops) {
    if (op.kind != DeviceKind::compute || p.streams[op.stream].device != scene.device.device) continue;
    const Time length = op.end - op.begin, beside = communication.within(op.begin, op.end);
    if (beside == Time{}) names[op.name].apart.push_back(length);
    else if (2 * beside >= length) names[op.name].beside.push_back(length);
  }
  Time lost{}, of{};
  for (auto& [name, sides] : names) {
    if (sides.apart.size() < kEnough || sides.beside.size() < kEnough) continue;
    const Distribution apart = distribution(std::move(sides.apart)), beside = distribution(std::move(sides.beside));
    if (!alike(apart) || !alike(beside) || beside.p50 <= apart.p50) continue;
    lost += (beside.p50 - apart.p50) * beside.count;
    of += beside.p50 * beside.count;
  }
  const double share = scene.share(lost);
  if (share < kWorthwhileKernels) return;
  out.push_back({"kernels_stretched_by_communication",
                 "",
                 0.5,
                 share,
                 share,
                 {fmt::format("kernels beside communication take {}; at the median length of kernels of the same name apart from it they would take {} less",
                              milliseconds_text(of), milliseconds_text(lost))},
                 "give NCCL fewer SMs (NCCL_MAX_CTAS, NCCL_NCHANNELS), use NVLink SHARP or copy engines where there are, or move the communication beside "
                 "kernels that are not bound by memory"});
}

/// Operators of the forward that ran again in the backward: activation checkpointing.
void recomputation(const Scene& scene, std::vector<Finding>& out) {
  const auto pass = [&](Pass of) { return scene.device.passes[static_cast<std::size_t>(of)]; };
  const PassTotal again = pass(Pass::recomputation), first = pass(Pass::forward);
  Time all{};
  for (const PassTotal& total : scene.device.passes) all += total.compute;
  const double share = scene.share(again.compute);
  if (share < kRecomputed) return;
  const double of_compute = static_cast<double>(again.compute.count()) / static_cast<double>(all.count());
  out.push_back({"recomputation",
                 "",
                 0.9,
                 share,
                 share,
                 {fmt::format("{} kernels of the forward ran again in the backward: {}, {} of all compute; the forwards themselves take {}", again.kernels,
                              milliseconds_text(again.compute), percent_text(of_compute), milliseconds_text(first.compute))},
                 "if memory allows: checkpoint every second block, keep what matrix products and attention write (selective checkpointing), or none"});
}

}  // namespace

void find_kernel_causes(const Scene& scene, std::vector<Finding>& out) {
  for (const auto rule : {unfused_attention, contention, recomputation}) rule(scene, out);
}

}  // namespace stepcast::trace::profile
