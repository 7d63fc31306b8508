// See hardware.hpp.
#include "cli/hardware.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "calibration/draws.hpp"
#include "calibration/machine.hpp"

namespace stepcast::cli {
namespace {

/// Constants that one cause moves share a draw: it is named after the cause.
std::string cause_of(const std::string& constant) {
  for (const char* prefix : {"host_", "attention_", "efficiency_"}) {
    if (constant.starts_with(prefix)) return prefix;
  }
  return constant.ends_with("_network_hop") ? "network_hop" : constant;
}

/// Calls `visit` with each constant that a draw moves.
template <class Visit>
void for_each_drawn(Hardware& hardware, Visit visit) {
  using calibration::Owner;
  for (const calibration::Parameter& parameter : calibration::candidates({hardware.gpu, hardware.cluster.node, {}})) {
    if (parameter.owner == Owner::host_clock) continue;  // of measurements, not of runs
    hw::Profile& profile = parameter.owner == Owner::gpu ? hardware.gpu : hardware.cluster.node;
    visit(parameter, profile.constants.find(parameter.name)->second);
  }
}

/// `draw_of(cause)`: by how many standard deviations its constants move.
template <class DrawOf>
void displace(Hardware& hardware, DrawOf draw_of) {
  for_each_drawn(hardware, [&](const calibration::Parameter& parameter, hw::Constant& constant) {
    const double draw = draw_of(cause_of(parameter.name));
    constant.value = std::clamp(constant.value * std::exp(spread_of(constant) * draw), parameter.min, parameter.max);
  });
}

template <class Change>
void change_where(hw::Profile& profile, Change change) {
  for (auto& [name, constant] : profile.constants) change(name, constant.value);
}

}  // namespace

Hardware hardware_of(const scenarios::Scenario& scenario) { return {scenarios::gpu(scenario), scenarios::hardware(scenario)}; }

double spread_of(const hw::Constant& constant) {
  if (constant.spread) return *constant.spread;
  switch (constant.origin) {
    case hw::Origin::datasheet: return 0;
    case hw::Origin::measured: return 0.05;
    case hw::Origin::fitted: return 0.08;
    case hw::Origin::assumed: break;
  }
  return 0.25;
}

Hardware drawn(Hardware hardware, std::uint64_t seed, std::uint64_t member) {
  displace(hardware, [&](const std::string& cause) { return calibration::normal(seed, cause, member); });
  return hardware;
}

std::vector<std::string> uncertain_causes(const Hardware& hardware) {
  std::vector<std::string> causes;
  Hardware still = hardware;
  for_each_drawn(still, [&](const calibration::Parameter& parameter, const hw::Constant& constant) {
    const std::string cause = cause_of(parameter.name);
    if (spread_of(constant) > 0 && std::find(causes.begin(), causes.end(), cause) == causes.end()) causes.push_back(cause);
  });
  return causes;
}

Hardware moved_up(Hardware hardware, const std::string& cause) {
  displace(hardware, [&](const std::string& of_constant) { return of_constant == cause ? 1.0 : 0.0; });
  return hardware;
}

Hardware scaled(Hardware hardware, const MachineFactors& factors) {
  change_where(hardware.gpu, [&](const std::string& name, double& value) {
    if (name == "sustained_clock") value *= factors.clock;
  });
  change_where(hardware.cluster.node, [&](const std::string& name, double& value) {
    if (name == "network_efficiency") value *= factors.network;
    if (name.ends_with("_network_hop")) value *= factors.latency;
    if (name.starts_with("host_") && !name.ends_with("_rate")) value *= factors.host;
  });
  return hardware;
}

}  // namespace stepcast::cli
