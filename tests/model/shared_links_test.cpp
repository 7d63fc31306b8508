// Collectives of different communicators share the adapters: hybrid sharding over two nodes runs its gathers and scatters beside the all-reduces of its replicas.
// docs/models.md, "Collectives" and "Contention".
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "hw_models/profiles.hpp"
#include "program/build.hpp"
#include "sim/simulate.hpp"
#include "tests/support/forecast.hpp"

using namespace stepcast;

namespace {

SimTime last_step(const program::Program& program, const sim::PriceList& prices) {
  sim::Options options;
  options.memory_limit = false;
  const sim::Result result = sim::simulate(program, prices, options);
  return result.step_end.back() - result.step_end[result.step_end.size() - 2];
}

}  // namespace

TEST_CASE("HYBRID_SHARD over slow adapters: two communicators at once take the adapters' time of both") {
  const auto scenario = scenarios::read_scenario("7b-32xa100", std::vector<std::string>{"/policy/sharding=HYBRID_SHARD", "/policy/shard_group_size=16",
                                                                                        "/model/layers=4", "/batch/micro_batch=1", "/cluster/nics_per_node=1"});
  const auto program = program::build_program(scenarios::step_spec(scenario), 3);
  auto prices = sim::price(program, hw::CostModel(scenarios::gpu(scenario), scenarios::hardware(scenario)));
  double adapters_s = 0;
  std::array<bool, program::kCommunicators> used{};
  for (const program::Op& op : program.slice(program.steps.back())) {
    if (op.kind != program::OpKind::collective || prices.collectives[op.id].nic_share == 0) continue;
    adapters_s += to_seconds(prices.collectives[op.id].alone).in(second)*prices.collectives[op.id].nic_share;
    used[static_cast<std::size_t>(program.collectives[op.id].communicator)] = true;
  }
  CHECK(std::count(used.begin(), used.end(), true) == 2);
  const SimTime shared = last_step(program, prices);
  CHECK(to_seconds(shared).in(second) >= adapters_s);
  for (auto& collective : prices.collectives) collective.nic_share = 0;
  const SimTime apart = last_step(program, prices);
  CHECK(to_seconds(apart).in(second) < 0.95 * to_seconds(shared).in(second));
}
