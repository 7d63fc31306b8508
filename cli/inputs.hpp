// From a scenario and its program to what the simulator takes: hardware, prices, options. Test: tests/golden/cli_test.cpp.
#pragma once

#include <optional>

#include "cli/hardware.hpp"
#include "hw_models/cost_model.hpp"
#include "program/program.hpp"
#include "scenarios/scenario.hpp"
#include "sim/simulate.hpp"

namespace stepcast::cli {

/// The caching allocator's settings. A memory fraction is one of the whole device (torch.cuda.set_per_process_memory_fraction); the allocator's is one of its pool.
memory::Settings allocator_settings(const scenarios::Allocator& allocator, double device_bytes, double pool_bytes);

struct Inputs {
  std::optional<hw::CostModel> model;  // absent in fixed-cost mode
  sim::PriceList prices;
  sim::Options options;
};

/// `program` is that of the scenario's step; `hardware`: other than the scenario's, not with fixed costs. Throws InputError.
Inputs inputs_of(const scenarios::Scenario& scenario, const program::Program& program, const Hardware* hardware = nullptr);

}  // namespace stepcast::cli
