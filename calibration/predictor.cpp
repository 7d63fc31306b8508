// See predictor.hpp.
#include "calibration/predictor.hpp"

#include "hw_models/host.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::calibration {
namespace {

constexpr double kCachedFrom = 1e6, kCachedTo = 1e8;  // bytes: repeated in a loop, such a kernel is served by the L2 cache, in training it isn't
constexpr std::int64_t kSmallProduct = 64, kShortSequence = 512, kSmallHead = 64, kLargeHead = 256;

hw::LinkRates links_of(const hw::Profile& node) {
  hw::Cluster cluster;
  cluster.node = node;
  cluster.gpus_per_node = static_cast<std::int32_t>(node.at("gpus"));
  return hw::link_rates(cluster);
}

template <class Key, class Rates, class Look>
const Rates& looked_up(std::map<Key, Rates>& known, Key key, Look look) {
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, look()).first->second;
}

std::string kernel_obstacle(const Measurement& row) {
  const hw::KernelShape& shape = row.kernel;
  if (row.ranks > 1) return "kernels of several ranks that share a machine";
  if (shape.memory == hw::MemoryClass::tiny) return "a kernel on single numbers";
  const Seconds shortest = (row.host_timed ? 50 : 20) * microsecond;
  if (shape.kind == hw::KernelKind::gemm) {
    if (shape.m < kSmallProduct || shape.n < kSmallProduct || shape.k < kSmallProduct) return "a product with a side below 64";
    return row.time < shortest ? "a product too short for the formula" : "";
  }
  if (shape.kind == hw::KernelKind::memory_bound) {
    const double bytes = dram_bytes(shape).si();
    return row.looped && bytes > kCachedFrom && bytes < kCachedTo ? "a tensor that the cache may hold" : "";
  }
  if (shape.m < kShortSequence) return "attention on fewer than 512 tokens";
  return shape.k < kSmallHead || shape.k > kLargeHead ? "a head dimension outside 64 to 256" : "";
}

std::string collective_obstacle(const Measurement& row, const hw::Profile& node) {
  const hw::GroupShape& group = row.collective.group;
  if (group.ranks_per_node == 0) return "ranks that don't fill nodes of this profile";
  if (group.ranks_per_node > static_cast<std::int32_t>(node.at("gpus"))) return "more ranks in a node than the profile has GPUs";
  return group.nodes > 1 && node.at("nics") < 1 ? "several nodes, and the profile has no network" : "";
}

}  // namespace

Predictor::Predictor(const Machine& machine) : machine_(machine) {}

Seconds Predictor::kernel(const hw::KernelShape& shape) {
  const hw::Profile& gpu = *machine_.gpu;
  if (shape.kind == hw::KernelKind::gemm) return gemm_time(shape, looked_up(gemm_, shape.dtype, [&] { return gemm_rates(gpu, shape.dtype); }));
  if (shape.kind == hw::KernelKind::memory_bound)
    return memory_bound_time(dram_bytes(shape), looked_up(memory_, shape.memory, [&] { return memory_rates(gpu, shape.memory); }));
  return attention_time(shape, looked_up(attention_, shape.attention, [&] { return attention_rates(gpu, shape.attention); }));
}

Seconds Predictor::time(const Measurement& row) {
  const auto constant = [](const hw::Profile& profile, const char* name) { return Seconds(profile.at(name)); };
  Seconds time;
  switch (row.timed) {
    case Timed::kernel: {
      time = kernel(row.kernel);
      if (!row.both_passes) break;
      hw::KernelShape backward = row.kernel;
      backward.kind = hw::KernelKind::attention_backward;
      time += kernel(backward);
      break;
    }
    case Timed::collective:
      if (!links_) links_ = links_of(*machine_.node);
      time = collective_time(row.collective, *links_);
      break;
    case Timed::launch_call: time = hw::host_time(*machine_.node, hw::HostWork::extra_launch); break;
    case Timed::launch_latency: time = constant(*machine_.gpu, "launch_latency"); break;
    case Timed::device_malloc:
      time = constant(*machine_.gpu, "device_malloc") + constant(*machine_.gpu, "device_malloc_per_gib") * (Bytes(static_cast<double>(row.bytes)) / gibibyte);
      break;
    case Timed::device_free: time = constant(*machine_.gpu, "device_free"); break;
    case Timed::cached_allocation: time = hw::host_time(*machine_.node, hw::HostWork::allocation); break;
  }
  return row.host_timed ? time + machine_.host_clock : time;
}

std::string obstacle(const Measurement& row, const Machine& machine) {
  const bool of_node = row.timed == Timed::collective || row.timed == Timed::launch_call || row.timed == Timed::cached_allocation;
  if (of_node && !machine.node) return "no node profile to calibrate (--node)";
  if (!of_node && !machine.gpu) return "no GPU profile to calibrate (--gpu)";
  std::string reason = row.timed == Timed::kernel ? kernel_obstacle(row) : row.timed == Timed::collective ? collective_obstacle(row, *machine.node) : "";
  if (!reason.empty()) return reason;
  try {
    static_cast<void>(Predictor(machine).time(row));
  } catch (const InputError& error) { return error.what(); }
  return "";
}

Measurement placed(Measurement row, const Machine& machine) {
  hw::GroupShape& group = row.collective.group;
  if (row.timed != Timed::collective || !machine.node || group.ranks_per_node > 0) return row;
  const auto gpus = static_cast<std::int32_t>(machine.node->at("gpus"));
  if (group.nodes <= gpus) group = {group.nodes, 1};
  else if (group.nodes % gpus == 0) group = {gpus, group.nodes / gpus};
  return row;
}

}  // namespace stepcast::calibration
