// `tune` as a library: every bound holds for what it bounds, and on small spaces the best is the one that brute force finds. docs/tune.md.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/inputs.hpp"
#include "cli/predict.hpp"
#include "cli/tune/run.hpp"
#include "hw_models/input_error.hpp"
#include "planner/bounds.hpp"
#include "tests/support/sanitized.hpp"

using namespace stepcast;
using scenarios::ScenarioTemplate;
using Sets = std::vector<std::string>;

namespace {

const Sets kSmall = {"/model/layers=4", "/run/steps=3", "/batch/micro_batch=2", "/batch/seq_len=1024"};

Sets with(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

/// Every point of a space, each simulated as a run of its own.
double brute_force(const cli::TuneProblem& problem, std::size_t& count) {
  const planner::Problem search = problem.problem();
  double best = 1e9;
  for (std::size_t g = 0; g < search.groups.size(); ++g) {
    for (std::size_t c = 0; c < search.groups[g].size(); ++c) {
      for (std::size_t m = 0; m < search.groups[g][c].members; ++m) {
        for (std::size_t a = 0; a < problem.space().allocators.size(); ++a) {
          planner::Evaluated point{g, c, m, {}};
          point.score.variant = a;
          try {
            const cli::Report report = cli::predict(problem.scenario().with(problem.sets(point))).report;
            if (report.outcome == "ok") best = std::min(best, report.step_time_s);
            ++count;
          } catch (const InputError&) {}
        }
      }
    }
  }
  return best;
}

}  // namespace

TEST_CASE("bounds of groups and classes hold for all their members, and a point's own for the point") {
  const ScenarioTemplate scenario("7b-32xa100", with(kSmall, {"/batch/grad_accum=4", "/model/layers=3"}));
  const scenarios::Scenario base = scenario.with({});
  const cli::TuneProblem problem(scenario, base, planner::space_of(base, {}));
  const planner::Problem search = problem.problem();
  int checked = 0;
  for (std::size_t g = 3; g < search.groups.size(); g += 61) {
    const planner::ClassBound group = search.group_bound(g);
    for (std::size_t c = g % 5; c < search.groups[g].size(); c += 23) {
      const planner::ClassBound cls = search.bound(g, c);
      if (cls.refused) continue;
      CHECK(group.time_s <= cls.time_s);
      CHECK(group.memory <= cls.memory);
      for (std::size_t m = 0; m < search.groups[g][c].members; ++m) {
        const planner::Evaluated point{g, c, m, {}};
        const scenarios::Scenario resolved = scenario.with(problem.sets(point));
        const program::Program program = cli::program_of(resolved);
        const cli::Inputs inputs = cli::inputs_of(resolved, program);
        const cli::Report report = cli::forecast(resolved, program);
        REQUIRE(report.outcome == "ok");
        CHECK(cls.time_s <= report.step_time_s);
        CHECK(cls.memory <= report.peak_allocated_bytes);
        CHECK(to_seconds(planner::critical_path(program, inputs.prices)).in(second) <= report.step_time_s);
        CHECK(planner::least_memory(program) <= report.peak_allocated_bytes);
        ++checked;
      }
    }
  }
  CHECK(checked > 150);
}

TEST_CASE("the work of a step with many micro-batches is that of two short ones, extended") {
  const ScenarioTemplate scenario("7b-32xa100", kSmall);
  for (const char* policy : {"/policy/no_sync=true", "/policy/sharding=SHARD_GRAD_OP", "/policy/framework=fsdp2"}) {
    const auto work = [&](int micro_batches) {
      const scenarios::Scenario resolved = scenario.with(Sets{policy, "/batch/grad_accum=" + std::to_string(micro_batches)});
      const program::Program program = cli::program_of(resolved);
      return planner::work_of(program, cli::inputs_of(resolved, program).prices);
    };
    const planner::StepWork extended = work(2).extended(work(3), 6), whole = work(9);
    CHECK(extended.compute == whole.compute);
    CHECK(extended.communicators == whole.communicators);
  }
}

TEST_CASE("on a small space the search finds what brute force finds") {
  const Sets fixed = {
      "/kernels/set",    "/kernels/attention",        "/kernels/loss",           "/kernels/fused_norm", "/optimizer/implementation", "/policy/wrap",
      "/policy/no_sync", "/allocator/max_split_size", "/policy/blocks_per_unit", "/policy/framework"};
  // A fast machine with a slow network, so that communication decides; and a device whose memory is tight, so that it does.
  for (const Sets& own : {Sets{"/policy/framework=fsdp1", "/cluster/nic_rate=10 Gb/s", "/cluster/nodes=2"},
                          Sets{"/policy/framework=fsdp2", "/allocator/device_memory=12 GiB", "/batch/seq_len=2048", "/model/layers=3", "/cluster/nodes=2"}}) {
    const ScenarioTemplate scenario("7b-32xa100", with(kSmall, own));
    const scenarios::Scenario base = scenario.with({});
    const cli::TuneProblem problem(scenario, base, planner::space_of(base, {0, false, fixed}));
    const planner::Found found = planner::search(problem.problem(), {});
    REQUIRE(found.any());
    std::size_t points = 0;
    const double best = brute_force(problem, points);
    CHECK(found.evaluated.front().score.time_s == doctest::Approx(best).epsilon(1e-4));
    CHECK(points > 300);
    CHECK(found.simulations < points / 2);
    if (test::kSanitized) break;
  }
}

TEST_CASE("a whole tune: what is reported can be run, decisions lead to the best, settings say it") {
  const ScenarioTemplate scenario("7b-32xa100", with(kSmall, {"/policy/backward_prefetch=NONE"}));
  cli::TuneSettings settings;
  settings.threads = 2;
  settings.space.fixed = {"/kernels/set", "/kernels/fused_norm", "/kernels/attention", "/kernels/loss"};
  const cli::TuneResult result = cli::tuned(scenario, settings);
  REQUIRE(!result.best.empty());
  CHECK(result.points > 50000);
  CHECK(result.evaluated + result.refused + result.pruned_by_memory + result.pruned_by_time <= result.points);
  const cli::Report best = cli::predict(scenario.with(result.best.front().sets)).report;
  CHECK(best.step_time_s == result.best.front().step_time_s);
  REQUIRE(!result.decisions.empty());
  CHECK(result.decisions.back().step_time_s == doctest::Approx(best.step_time_s));
  CHECK(result.decisions.front().gain > 0);
  for (std::size_t i = 1; i < result.front.size(); ++i) {
    CHECK(result.front[i].step_time_s >= result.front[i - 1].step_time_s);
    CHECK(result.front[i].headroom_bytes > result.front[i - 1].headroom_bytes);
  }
  const nlohmann::ordered_json json = cli::to_json(result);
  for (const char* name : {"fsdp1", "fsdp2", "accelerate", "torchtitan", "deepspeed", "llm_foundry", "environment"})
    CHECK(!json["settings"][name].get<std::string>().empty());
  CHECK(json["evaluated"] == result.evaluated);
}

TEST_CASE("what can't be tuned is refused") {
  cli::TuneSettings settings;
  settings.threads = 1;
  CHECK_THROWS_AS(cli::tuned(ScenarioTemplate("7b-32xa100", Sets{"/run/ranks=explicit"}), settings), InputError);
  settings.space.global_batch = 33;
  CHECK_THROWS_AS(cli::tuned(ScenarioTemplate("7b-32xa100"), settings), InputError);
  settings.space = {0, false, {"/no/such"}};
  CHECK_THROWS_AS(cli::tuned(ScenarioTemplate("7b-32xa100"), settings), InputError);
  settings.space = {0, false, {"/policy/framework"}};
  CHECK_THROWS_AS(cli::tuned(ScenarioTemplate("7b-32xa100", Sets{"/policy/framework=ddp"}), settings), InputError);
}
