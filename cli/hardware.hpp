// The machine of a forecast apart from its scenario, so that its constants can be moved: by draws from their spreads, or by factors fitted to runs. docs/intervals.md.
// Test: tests/unit/hardware_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/hardware.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

struct Hardware {
  hw::Profile gpu;
  hw::Cluster cluster;
};

/// With real hardware only: a scenario with fixed costs has none.
Hardware hardware_of(const scenarios::Scenario& scenario);

/// Standard deviation of log(value): the profile's own, else by kind (datasheet 0, measured 0.05, fitted 0.08, assumed 0.25).
double spread_of(const hw::Constant& constant);

/// Draw `member` of the constants that a measurement could move, each log-normal around its value. What has one cause moves together: host times, latencies of the network, attention
/// rates, efficiencies of memory-bound kernels. A function of seed, member and name alone.
Hardware drawn(Hardware hardware, std::uint64_t seed, std::uint64_t member);

/// What the draws move: each cause once, in the order of its first constant; none whose constants are all certain.
std::vector<std::string> uncertain_causes(const Hardware& hardware);
/// With the constants of one cause a standard deviation above their values.
Hardware moved_up(Hardware hardware, const std::string& cause);

/// What may be unknown of the machine that ran: multiples of the profile's values.
struct MachineFactors {
  double clock = 1;    // rate of matrix products and attention
  double network = 1;  // bandwidth between nodes
  double latency = 1;  // of each hop between nodes
  double host = 1;     // time of each piece of host work
};

/// Name of a profile that `calibrate` makes of another, and of that other one.
std::string calibrated_name(const std::string& profile);
std::string base_name(const std::string& profile);

enum class Factor : std::uint8_t { clock, network, latency, host };
/// Which factor moves a constant of a GPU's profile, or of a node's; none where it isn't the machine's own.
std::optional<Factor> factor_of(std::string_view constant, bool of_gpu);

Hardware scaled(Hardware hardware, const MachineFactors& factors);

}  // namespace stepcast::cli
