// Better hardware does not make a step longer, turning overlap on does not cost more than what runs together costs, and no step is shorter than its host, its
// compute or its links: over a random grid of policies. List scheduling has anomalies (Graham: Bounds on multiprocessing timing anomalies, 1969), because kernels that
// come earlier may meet a collective that slows them; kAnomaly bounds what was found here and says where.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hw_models/profiles.hpp"
#include "program/build.hpp"
#include "scenarios/scenario.hpp"
#include "sim/simulate.hpp"

using namespace stepcast;

namespace {

constexpr int kSettings = 60;
constexpr double kAnomaly = 0.001;  // the largest ratio found over the grid below is 1.00013, with faster hosts or links

/// A sequence of choices that is the same everywhere.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : draws_(seed, sim::Purpose::kernel, 0) {}
  std::string of(const std::vector<std::string>& values) { return values[draws_(count_++) % values.size()]; }

 private:
  sim::Draws draws_;
  std::uint64_t count_ = 0;
};

std::vector<std::string> random_sets(std::uint64_t seed) {
  Choices choose(seed);
  const std::string framework = choose.of({"fsdp1", "fsdp2", "ddp"});
  std::vector<std::string> sets = {"/policy/framework=" + framework,
                                   "/model/layers=" + choose.of({"3", "5"}),
                                   "/batch/seq_len=" + choose.of({"256", "1024", "4096"}),
                                   "/batch/micro_batch=" + choose.of({"1", "2"}),
                                   "/batch/grad_accum=" + choose.of({"1", "2"}),
                                   "/cluster/nodes=" + choose.of({"1", "4"}),
                                   "/host/scale=" + choose.of({"1", "4"})};
  if (framework == "fsdp1") {
    sets.push_back("/policy/backward_prefetch=" + choose.of({"BACKWARD_PRE", "BACKWARD_POST", "NONE"}));
    sets.push_back("/policy/forward_prefetch=" + choose.of({"true", "false"}));
    sets.push_back("/policy/limit_all_gathers=" + choose.of({"true", "false"}));
  }
  if (framework != "ddp") sets.push_back("/policy/sharding=" + choose.of({"FULL_SHARD", "HYBRID_SHARD"}));
  if (framework != "ddp" && sets.back() == "/policy/sharding=HYBRID_SHARD") sets.emplace_back("/cluster/nodes=4");
  return sets;
}

struct Case {
  program::Program program;
  sim::PriceList prices;
};

Case make(const scenarios::Scenario& scenario) {
  const hw::Cluster cluster = scenarios::hardware(scenario);
  Case c{program::build_program(scenarios::step_spec(scenario), 4), {}};
  c.prices = sim::price(c.program, hw::CostModel(scenarios::gpu(scenario), cluster));
  for (SimTime& time : c.prices.host) time = sim::scaled(time, sim::factor_of(scenario.host.scale));
  return c;
}

double step(const program::Program& program, const sim::PriceList& prices) {
  sim::Options options;
  options.memory_limit = false;
  const auto ends = sim::simulate(program, prices, options).step_end;
  return to_seconds(ends.back() - ends[ends.size() - 2]).si();
}

/// All of it with memory: a pool of the given size.
sim::Result with_memory(const Case& c, std::int64_t bytes) {
  sim::Options options;
  options.pool_bytes = bytes;
  return sim::simulate(c.program, c.prices, options);
}

template <class Change>
double changed(const Case& c, Change change) {
  sim::PriceList prices = c.prices;
  change(prices);
  return step(c.program, prices);
}

void faster_links(sim::PriceList& prices) {
  for (auto& collective : prices.collectives) collective.alone = collective.alone * 3 / 4;
}
void faster_kernels(sim::PriceList& prices) {
  for (auto& kernel : prices.kernels) kernel.alone = kernel.alone * 3 / 4;
}
void faster_host(sim::PriceList& prices) {
  for (SimTime& time : prices.host) time = time * 3 / 4;
}
void no_latency(sim::PriceList& prices) { prices.launch_latency = SimTime{}; }
void no_contention(sim::PriceList& prices) {
  for (auto& kernel : prices.kernels) kernel.nccl_slowdown = kernel.dram_share = kernel.processor_share = 0;
}

}  // namespace

TEST_CASE("faster links, kernels, hosts and launches do not lengthen a step") {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < kSettings; ++seed) {
    const std::vector<std::string> sets = random_sets(seed);
    const Case c = make(scenarios::read_scenario("7b-32xa100", sets));
    const double base = step(c.program, c.prices);
    for (const auto change : {faster_links, faster_kernels, faster_host, no_latency, no_contention}) {
      const double ratio = changed(c, change) / base;
      worst = std::max(worst, ratio);
      CAPTURE(seed);
      CHECK(ratio <= 1 + kAnomaly);
    }
  }
  MESSAGE("largest ratio: ", worst);
}

TEST_CASE("less memory never speeds a step up") {
  for (std::uint64_t seed = 0; seed < kSettings; ++seed) {
    const Case c = make(scenarios::read_scenario("7b-32xa100", random_sets(seed)));
    const auto ample = with_memory(c, std::int64_t{1} << 40);
    const auto tight = with_memory(c, ample.peak_reserved - (ample.peak_reserved - ample.peak_active) / 2);
    REQUIRE(ample.outcome == sim::Outcome::ok);
    if (tight.outcome != sim::Outcome::ok) continue;
    CAPTURE(seed);
    const auto last = [](const sim::Result& r) { return to_seconds(r.step_end.back() - r.step_end[r.step_end.size() - 2]).si(); };
    CHECK(last(tight) >= last(ample) * (1 - kAnomaly));
  }
}

TEST_CASE("prefetching costs at most what kernels and collectives cost each other") {
  double worst = 0;
  const auto compare = [&](std::vector<std::string> sets, const char* off, const char* on) {
    sets.emplace_back(off);
    const Case without = make(scenarios::read_scenario("7b-32xa100", sets));
    sets.back() = on;
    const Case with = make(scenarios::read_scenario("7b-32xa100", sets));
    worst = std::max(worst, step(with.program, with.prices) / step(without.program, without.prices));
    double slowdown = 0;
    for (const auto& kernel : with.prices.kernels) slowdown = std::max(slowdown, kernel.nccl_slowdown);
    CHECK(step(with.program, with.prices) <= step(without.program, without.prices) * (1 + slowdown));
    const double free_of_contention = changed(with, no_contention) / changed(without, no_contention);
    CAPTURE(on);
    CHECK(free_of_contention <= 1 + kAnomaly);
  };
  for (const char* seq_len : {"/batch/seq_len=256", "/batch/seq_len=1024", "/batch/seq_len=4096"})
    for (const char* nodes : {"/cluster/nodes=1", "/cluster/nodes=4"}) {
      const std::vector<std::string> sets = {"/model/layers=5", seq_len, nodes, "/batch/micro_batch=1"};
      compare(sets, "/policy/backward_prefetch=NONE", "/policy/backward_prefetch=BACKWARD_PRE");
      compare(sets, "/policy/backward_prefetch=NONE", "/policy/backward_prefetch=BACKWARD_POST");
      compare(sets, "/policy/forward_prefetch=false", "/policy/forward_prefetch=true");
    }
  MESSAGE("largest ratio: ", worst);
}

TEST_CASE("no step is shorter than the work of its host, its compute stream or its links") {
  for (std::uint64_t seed = 0; seed < kSettings; ++seed) {
    const Case c = make(scenarios::read_scenario("7b-32xa100", random_sets(seed)));
    SimTime host{}, compute{}, links{};
    for (const program::Op& op : c.program.slice(c.program.steps.back())) {
      if (op.kind == program::OpKind::launch) host += c.prices.host[static_cast<std::size_t>(op.work)];
      if (op.kind == program::OpKind::host_work) host += c.prices.host[static_cast<std::size_t>(op.work)] * static_cast<std::int64_t>(op.count);
      if (op.kind == program::OpKind::launch && op.stream == program::Stream::compute) compute += c.prices.kernels[op.id].alone;
      if (op.kind == program::OpKind::collective && c.program.collectives[op.id].communicator == program::Communicator::shard)
        links += c.prices.collectives[op.id].alone;
    }
    CAPTURE(seed);
    const double time = step(c.program, c.prices);
    for (const SimTime work : {host, compute, links}) CHECK(time >= to_seconds(work).si() * (1 - 1e-9));
  }
}
