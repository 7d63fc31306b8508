// The constants that are fitted: a GPU and a node profile and what a host clock adds, as a vector of logarithms. docs/calibration.md, "Parameters".
// Test: tests/unit/calibrate_test.cpp.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw_models/hardware.hpp"
#include "hw_models/units.hpp"

namespace stepcast::calibration {

struct Machine {
  std::optional<hw::Profile> gpu, node;  // absent: not calibrated, and its rows are left out
  Seconds host_clock{20e-6};             // launch and synchronisation inside a time by a host clock
};

enum class Owner : std::uint8_t { gpu, node, host_clock };
const char* name(Owner owner);

/// One constant to fit, and what is known of it before: log(value) ~ Normal(log(prior), width), between the limits that profiles have.
struct Parameter {
  std::string name;
  Owner owner = Owner::gpu;
  double prior = 0, width = 0, min = 0, max = 0;
};

/// Every constant of the machine that measurements can move: neither datasheet figures nor what describes how the machine is built; none that is 0.
std::vector<Parameter> candidates(const Machine& machine);

/// The machine with these values (natural logarithms) in place of its own.
Machine with_values(const Machine& machine, const std::vector<Parameter>& parameters, const Eigen::VectorXd& logs);

}  // namespace stepcast::calibration
