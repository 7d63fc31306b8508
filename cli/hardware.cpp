// See hardware.hpp.
#include "cli/hardware.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "calibration/draws.hpp"
#include "calibration/machine.hpp"

namespace stepcast::cli {
namespace {

constexpr const char* kCalibrated = ", calibrated";

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

double value_of(const MachineFactors& factors, Factor factor) {
  switch (factor) {
    case Factor::clock: return factors.clock;
    case Factor::network: return factors.network;
    case Factor::latency: return factors.latency;
    case Factor::host: return factors.host;
  }
  return 1;
}

void scale(hw::Profile& profile, bool of_gpu, const MachineFactors& factors) {
  for (auto& [name, constant] : profile.constants) {
    if (const auto factor = factor_of(name, of_gpu)) constant.value *= value_of(factors, *factor);
  }
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

std::string base_name(const std::string& profile) { return profile.substr(0, profile.find(kCalibrated)); }
std::string calibrated_name(const std::string& profile) { return base_name(profile) + kCalibrated; }

std::optional<Factor> factor_of(std::string_view constant, bool of_gpu) {
  if (of_gpu) return constant == "sustained_clock" ? std::optional(Factor::clock) : std::nullopt;
  if (constant == "network_efficiency") return Factor::network;
  if (constant.ends_with("_network_hop")) return Factor::latency;
  if (constant.starts_with("host_") && !constant.ends_with("_rate")) return Factor::host;
  return std::nullopt;
}

Hardware scaled(Hardware hardware, const MachineFactors& factors) {
  scale(hardware.gpu, true, factors);
  scale(hardware.cluster.node, false, factors);
  return hardware;
}

}  // namespace stepcast::cli
