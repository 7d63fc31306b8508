// Speed of a forecast, without start-up and output: building the program, pricing it, simulating it. Figures: docs/performance.md.
#include <benchmark/benchmark.h>

#include "hw_models/profiles.hpp"
#include "program/build.hpp"
#include "scenarios/scenario.hpp"
#include "sim/event_queue.hpp"
#include "sim/simulate.hpp"

namespace {

using namespace stepcast;

struct Case {
  explicit Case(int steps, int nodes = 4) {
    const std::string set = "/cluster/nodes=" + std::to_string(nodes);
    const std::vector<std::string> sets = {set};
    scenario = scenarios::read_scenario("7b-32xa100", sets);
    scenario.run.steps = steps;
    const hw::Cluster cluster = scenarios::hardware(scenario);
    model = std::make_unique<hw::CostModel>(hw::gpu_profile(cluster.gpu), cluster);
    options.world_size = scenarios::ranks(scenario);
    options.record_from_step = steps - 1;
    options.record_host = false;
    options.pool_bytes = static_cast<std::int64_t>(model->device_memory().in(byte)-model->memory_outside_pool().in(byte));
  }
  [[nodiscard]] sim::Result run() const {
    const auto program = program::build_program(scenarios::step_spec(scenario), scenario.run.steps);
    return sim::simulate(program, sim::price(program, *model), options);
  }
  scenarios::Scenario scenario;
  std::unique_ptr<hw::CostModel> model;
  sim::Options options;
};

void run_case(benchmark::State& state, const Case& one) {
  std::uint64_t events = 0;
  for (auto _ : state) {
    const sim::Result result = one.run();
    if (result.outcome != sim::Outcome::ok) state.SkipWithError("the scenario did not run");
    events += result.events;
  }
  state.counters["events/s"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
  state.counters["events"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kAvgIterations);
}

void folded_7b_3_steps(benchmark::State& state) { run_case(state, Case(3)); }
BENCHMARK(folded_7b_3_steps)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

void explicit_32_ranks_3_steps(benchmark::State& state) {
  Case one(3);
  one.options.ranks = 32;
  run_case(state, one);
}
BENCHMARK(explicit_32_ranks_3_steps)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

void explicit_1024_ranks_1_step(benchmark::State& state) {
  Case one(1, 128);
  one.options.ranks = 1024;
  run_case(state, one);
}
BENCHMARK(explicit_1024_ranks_1_step)->Unit(benchmark::kSecond)->Iterations(1)->MeasureProcessCPUTime();

void build_program_7b(benchmark::State& state) {
  const Case one(3);
  const auto spec = scenarios::step_spec(one.scenario);
  for (auto _ : state) benchmark::DoNotOptimize(program::build_program(spec, 3));
}
BENCHMARK(build_program_7b)->Unit(benchmark::kMillisecond);

/// The hold model: pop one event, push one, at a steady queue size.
void event_queue_hold(benchmark::State& state) {
  sim::EventQueue queue;
  std::uint64_t random = 1;
  const auto later = [&random](std::int64_t now) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return SimTime(now + static_cast<std::int64_t>(random >> 44));
  };
  for (std::int64_t i = 0; i < state.range(0); ++i) queue.push(later(0), sim::EventKind::kernel_end, static_cast<std::uint32_t>(i));
  std::int64_t left = 1 << 30;
  for (auto _ : state) {
    const sim::Event event = queue.pop();
    if (--left == 0) state.SkipWithError("sequence numbers are used up");
    benchmark::DoNotOptimize(queue.push(later(event.time()), sim::EventKind::kernel_end, event.target()));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(event_queue_hold)->Arg(4)->Arg(256)->Arg(4096)->Arg(65536)->Iterations(20000000);

}  // namespace
