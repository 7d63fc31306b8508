// Lower bounds that hold on every scenario: a step takes at least its compute, the work of each stream, the work of each communicator, and its critical path
// (the same program with a host that costs nothing and nothing that contends).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "hw_models/profiles.hpp"
#include "program/build.hpp"
#include "sim/simulate.hpp"
#include "tests/support/forecast.hpp"

using namespace stepcast;

namespace {

struct Work {
  std::array<SimTime, program::kStreams> streams{};
  std::array<SimTime, program::kCommunicators> communicators{};
};

/// What the last step puts on each stream and communicator, at full speed.
Work work_of_last_step(const program::Program& program, const sim::PriceList& prices) {
  Work work;
  for (const program::Op& op : program.slice(program.steps.back())) {
    const auto stream = static_cast<std::size_t>(op.stream);
    if (op.kind == program::OpKind::launch) work.streams[stream] += prices.kernels[op.id].alone;
    if (op.kind != program::OpKind::collective) continue;
    work.streams[stream] += prices.collectives[op.id].alone;
    work.communicators[static_cast<std::size_t>(program.collectives[op.id].communicator)] += prices.collectives[op.id].alone;
  }
  return work;
}

/// Without host costs, latencies and contention only the order of work on streams and communicators is left.
sim::PriceList without_host_and_contention(sim::PriceList prices) {
  prices.host.fill(SimTime{});
  prices.launch_latency = SimTime{};
  for (auto& kernel : prices.kernels) kernel.nccl_slowdown = kernel.dram_share = kernel.processor_share = 0;
  for (auto& collective : prices.collectives) collective.nvlink_share = collective.nic_share = 0;
  return prices;
}

SimTime last_step(const sim::Result& result) { return result.step_end.back() - result.step_end[result.step_end.size() - 2]; }

void check_bounds(const scenarios::Scenario& scenario) {
  const auto cluster = scenarios::hardware(scenario);
  const auto program = program::build_program(scenarios::step_spec(scenario), 4);
  const auto prices = sim::price(program, hw::CostModel(hw::gpu_profile(cluster.gpu), cluster));
  sim::Options options;
  options.memory_limit = false;
  const SimTime step = last_step(sim::simulate(program, prices, options));
  const Work work = work_of_last_step(program, prices);
  for (const SimTime stream : work.streams) CHECK(step >= stream);
  for (const SimTime communicator : work.communicators) CHECK(step >= communicator);
  const SimTime critical_path = last_step(sim::simulate(program, without_host_and_contention(prices), options));
  CHECK(step >= critical_path);
  CHECK(critical_path >= work.streams[static_cast<std::size_t>(program::Stream::compute)]);
}

}  // namespace

TEST_CASE("no step of a built-in scenario is shorter than its bounds") {
  for (const std::string& name : scenarios::scenario_names()) {
    CAPTURE(name);
    check_bounds(scenarios::read_scenario(name));
  }
}

TEST_CASE("no step is shorter than its bounds, whatever the policy") {
  for (const char* prefetch : {"BACKWARD_PRE", "BACKWARD_POST", "NONE"})
    for (const char* sharding : {"FULL_SHARD", "SHARD_GRAD_OP"})
      for (const char* nics : {"1", "8"})
        for (const char* micro_batch : {"1", "4"}) {
          const std::vector<std::string> sets = {std::string("/policy/backward_prefetch=") + prefetch,
                                                 std::string("/policy/sharding=") + sharding,
                                                 std::string("/cluster/nics_per_node=") + nics,
                                                 std::string("/batch/micro_batch=") + micro_batch,
                                                 "/batch/seq_len=1024",
                                                 "/model/layers=6"};
          CAPTURE(prefetch);
          CAPTURE(sharding);
          CAPTURE(nics);
          CAPTURE(micro_batch);
          check_bounds(scenarios::read_scenario("7b-32xa100", sets));
        }
}

TEST_CASE("no step is shorter than its bounds, whatever the framework") {
  using Sets = std::vector<std::string>;
  const Sets settings[] = {
      {"/policy/framework=fsdp2"},
      {"/policy/framework=fsdp2", "/policy/reshard_after_forward=8", "/policy/forward_prefetch_depth=1", "/policy/backward_prefetch_depth=2"},
      {"/policy/framework=fsdp2", "/policy/sharding=HYBRID_SHARD", "/policy/wrap=embedding_and_head"},
      {"/policy/framework=fsdp2", "/policy/cpu_offload=parameters"},
      {"/policy/framework=fsdp1", "/policy/cpu_offload=parameters", "/policy/no_sync=true"},
      {"/policy/framework=ddp"},
      {"/policy/framework=ddp", "/policy/gradient_as_bucket_view=true", "/policy/no_sync=true"},
      {"/policy/framework=zero1"},
      {"/policy/framework=zero1", "/policy/overlap_comm=true", "/policy/reduce_bucket_size=50000000"},
      {"/policy/framework=zero2", "/policy/overlap_comm=true", "/policy/reduce_scatter=false"},
      {"/policy/framework=zero2", "/policy/contiguous_gradients=false", "/policy/cpu_offload=optimizer"},
      {"/policy/framework=zero3"},
      {"/policy/framework=zero3", "/policy/overlap_comm=false", "/policy/stage3_max_reuse_distance=0"},
      {"/policy/framework=zero3", "/policy/cpu_offload=parameters"}};
  for (const Sets& setting : settings)
    for (const char* accumulation : {"1", "2"}) {
      Sets sets = setting;
      for (const char* more : {"/batch/seq_len=1024", "/model/layers=4", "/batch/micro_batch=1"}) sets.emplace_back(more);
      sets.push_back(std::string("/batch/grad_accum=") + accumulation);
      CAPTURE(setting.front());
      CAPTURE(setting.back());
      CAPTURE(accumulation);
      check_bounds(scenarios::read_scenario("7b-32xa100", sets));
    }
}

TEST_CASE("conservation: exposed communication is part of communication, and the parts of the step add up") {
  for (const std::string& name : scenarios::scenario_names()) {
    CAPTURE(name);
    const auto report = test::forecast(name).report;
    REQUIRE(report.outcome == "ok");
    CHECK(report.exposed_comm_s <= report.comm_s);
    CHECK(report.compute_s + report.exposed_comm_s + report.idle_s == doctest::Approx(report.step_time_s).epsilon(1e-9));
    CHECK(report.compute_s <= report.step_time_s);
  }
}
