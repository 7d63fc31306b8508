// See machine.hpp.
#include "calibration/machine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "hw_models/profile_rules.hpp"

namespace stepcast::calibration {
namespace {

// How machine and links are built, and line rates: kernels' and collectives' efficiencies stand against them, so that both can't be fitted.
constexpr std::array<std::string_view, 12> kBuild{"gpus",
                                                  "nics",
                                                  "nic_rate",
                                                  "nvlink_rate",
                                                  "nvlink_reach",
                                                  "oversubscription",
                                                  "pcie_rate",
                                                  "peer_access",
                                                  "gpus_per_host_bridge",
                                                  "processors",
                                                  "host_memory_rate",
                                                  "host_priced_memory_rate"};
constexpr std::array<std::string_view, 3> kFacts{"device_memory", "memory_outside_pool", "dram_bandwidth"};

constexpr double kHostClockWidth = 0.7;
constexpr double kReach = 1000;  // a constant may move this factor from its prior, within its rule's limits

/// Of the logarithm: how far constants of this kind were off where they could be checked (docs/calibration.md, "Priors").
double width_of(const hw::Constant& constant) {
  const double own = constant.spread.value_or(0);
  switch (constant.origin) {
    case hw::Origin::datasheet: return std::max(own, 0.03);
    case hw::Origin::measured: return std::max(own, 0.1);
    case hw::Origin::fitted: return std::max(own, 0.25);
    case hw::Origin::assumed: return std::max(own, 0.7);
  }
  return 0.7;
}

bool can_move(const std::string& name, const hw::Constant& constant) {
  const auto among = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return constant.origin != hw::Origin::datasheet && constant.value > 0 && !among(kBuild) && !among(kFacts) && !name.starts_with("peak_");
}

void add(const hw::Profile& profile, Owner owner, std::span<const hw::ConstantRule> rules, std::vector<Parameter>& result) {
  for (const auto& [name, constant] : profile.constants) {
    if (!can_move(name, constant)) continue;
    const hw::ConstantRule& rule = *hw::find_rule(rules, name);
    result.push_back(
        {name, owner, constant.value, width_of(constant), std::max(rule.min, constant.value / kReach), std::min(rule.max, constant.value * kReach)});
  }
}

}  // namespace

const char* name(Owner owner) {
  switch (owner) {
    case Owner::gpu: return "gpu";
    case Owner::node: return "node";
    case Owner::host_clock: return "host_clock";
  }
  return "?";
}

std::vector<Parameter> candidates(const Machine& machine) {
  std::vector<Parameter> result;
  if (machine.gpu) add(*machine.gpu, Owner::gpu, hw::gpu_rules(), result);
  if (machine.node) add(*machine.node, Owner::node, hw::node_rules(), result);
  result.push_back({"host_clock", Owner::host_clock, machine.host_clock.si(), kHostClockWidth, 1e-8, 1e-2});
  return result;
}

Machine with_values(const Machine& machine, const std::vector<Parameter>& parameters, const Eigen::VectorXd& logs) {
  Machine changed = machine;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const double value = std::exp(logs[static_cast<Eigen::Index>(p)]);
    switch (parameters[p].owner) {
      case Owner::gpu: changed.gpu->constants.at(parameters[p].name).value = value; break;
      case Owner::node: changed.node->constants.at(parameters[p].name).value = value; break;
      case Owner::host_clock: changed.host_clock = Seconds(value); break;
    }
  }
  return changed;
}

}  // namespace stepcast::calibration
