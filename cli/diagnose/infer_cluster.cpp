// GPU by the name that the driver gives it; nodes as the first profile builds them that carries it.
#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

#include "cli/diagnose/infer.hpp"
#include "hw_models/profiles.hpp"

namespace stepcast::cli {

namespace {

struct DeviceName {
  std::string_view driver, profile;
};
// cudaDeviceProp::name, where it is not the profile's name behind the maker's.
constexpr std::array kDeviceNames = {DeviceName{"h100-80gb-hbm3", "h100-sxm5-80gb"},
                                     DeviceName{"h100-pcie", "h100-pcie-80gb"},
                                     DeviceName{"h200", "h200-sxm-141gb"},
                                     DeviceName{"b200", "b200-sxm-180gb"},
                                     DeviceName{"h800", "h800-sxm5-80gb"},
                                     DeviceName{"a100-80gb-pcie", "a100-pcie-80gb"},
                                     DeviceName{"a100-pcie-40gb", "a100-pcie-40gb"},
                                     DeviceName{"a100-sxm-64gb", "a100-sxm-64gb"},
                                     DeviceName{"a40", "a40-48gb"},
                                     DeviceName{"a10g", "a10g-24gb"},
                                     DeviceName{"l40s", "l40s-48gb"},
                                     DeviceName{"geforce-rtx-3090", "rtx-3090-24gb"},
                                     DeviceName{"geforce-rtx-4090", "rtx-4090-24gb"},
                                     DeviceName{"v100-sxm3-32gb", "v100-sxm2-32gb"}};

/// "NVIDIA A100-SXM4-80GB" -> "a100-sxm4-80gb".
std::string plain(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return c == ' ' ? '-' : static_cast<char>(std::tolower(c)); });
  for (const std::string_view maker : {"nvidia-", "tesla-"}) {
    if (name.starts_with(maker)) name.erase(0, maker.size());
  }
  return name;
}

std::string profile_of(const std::string& device) {
  std::string name = plain(device);
  const std::vector<std::string> known = hw::gpu_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  const auto at = std::find_if(kDeviceNames.begin(), kDeviceNames.end(), [&](const DeviceName& entry) { return entry.driver == name; });
  return at == kDeviceNames.end() ? "" : std::string(at->profile);
}

/// DGX first: the machine that others are built after.
std::string node_with(const std::string& gpu) {
  std::string first;
  for (const std::string& node : hw::node_names()) {
    if (hw::node_profile(node).default_gpu != gpu) continue;
    if (node.starts_with("dgx")) return node;
    if (first.empty()) first = node;
  }
  return first;
}

std::int64_t largest_group(const trace::profile::Workload& work) {
  std::int64_t ranks = 1;
  for (const auto& message : work.messages) ranks = std::max(ranks, message.ranks);
  return ranks;
}

void infer_size(const TraceView& trace, ScenarioDraft& draft) {
  const auto& header = trace.rank.profile.header;
  const std::int64_t group = largest_group(trace.work);
  if (header.world_size.value_or(0) < 1 && !trace.work.messages.empty() && group < 2) {
    draft.missing("/cluster/nodes", "the file has collectives, but neither distributedInfo nor the sizes of their groups");
    return;
  }
  const std::int64_t world = std::max(header.world_size.value_or(0), group);
  const std::string from = header.world_size.value_or(0) >= group ? "distributedInfo" : "the largest group of a collective";
  const std::int64_t per_node = std::gcd(world, std::int64_t{8});
  draft.guess("/cluster/gpus_per_node", per_node, "no trace says how many ranks share a node; nodes of 8 are usual");
  draft.guess("/cluster/nodes", world / per_node, std::to_string(world) + " ranks (" + from + ") in nodes of " + std::to_string(per_node));
  if (world == per_node) draft.seen("/cluster/nodes", 1, std::to_string(world) + " ranks (" + from + ") fit into a node");
}

}  // namespace

void infer_cluster(const TraceView& trace, ScenarioDraft& draft) {
  const auto& header = trace.rank.profile.header;
  const std::string device = header.gpus.empty() ? "" : header.gpus.begin()->second;
  const std::string gpu = profile_of(device), node = gpu.empty() ? "" : node_with(gpu);
  if (node.empty() && trace.mentions("native::add residual")) {
    draft.guess("/cluster/node", "host-threads", "native kernels on \"" + device + "\": ranks that are threads of one machine");
  } else if (node.empty()) {
    draft.missing("/cluster/node", device.empty() ? "the file does not say which GPU ran" : "no profile of \"" + device + "\"");
  } else {
    draft.guess("/cluster/node", node, "the node that such GPUs usually stand in");
    draft.seen("/cluster/gpu", gpu, "deviceProperties: " + device);
  }
  infer_size(trace, draft);
}

}  // namespace stepcast::cli
