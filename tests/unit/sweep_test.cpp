// A sweep as a library: mistakes and combinations, equal scenarios once, programs shared, what is kept and found again, missing memory. docs/sweep.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "cli/predict.hpp"
#include "cli/progress.hpp"
#include "cli/report/sweep_text.hpp"
#include "cli/sweep/run.hpp"
#include "hw_models/input_error.hpp"
#include "support/file.hpp"

using namespace stepcast;
using cli::SweepPlan, cli::SweepStore, planner::Grid, planner::parse_axis, scenarios::ScenarioTemplate;
using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

namespace {

const Texts kSmall = {"/model/layers=2", "/run/steps=3"};

Grid grid_of(const Texts& axes) {
  std::vector<planner::Axis> parsed;
  for (const std::string& axis : axes) parsed.push_back(parse_axis(axis));
  return Grid(parsed);
}

Json kept(const SweepPlan& plan, const SweepStore& store, std::size_t point) { return Json::parse(store.get(plan.unique_of(point)->key)); }

std::string table_of(const Grid& grid, const std::vector<cli::PointRow>& rows, std::size_t shown) {
  cli::SweepTable table(grid, shown);
  for (std::size_t i = 0; i < rows.size(); ++i) table.add(i, rows[i]);
  return table.text();
}

}  // namespace

TEST_CASE("each point of a sweep has the report that a run of it has, without the assumed constants") {
  const ScenarioTemplate scenario("7b-32xa100", kSmall);
  const Grid grid = grid_of({"/batch/micro_batch=1,2", "/policy/framework=fsdp1,fsdp2", "/cluster/nodes=1,2"});
  const SweepPlan plan = cli::make_plan(scenario, grid, 2);
  SweepStore store;
  const cli::SweepCounts counts = cli::run_sweep({scenario, grid, plan, 2}, store);
  CHECK(counts.simulated == 8);
  for (std::size_t i = 0; i < grid.size(); ++i) {
    auto of_run = cli::to_json(cli::predict(scenario.with(grid.sets(i))).report);
    of_run.erase("assumptions");
    CHECK(kept(plan, store, i)["report"] == of_run);
  }
}

TEST_CASE("points that resolve to the same scenario are simulated once") {
  const ScenarioTemplate scenario("7b-32xa100", kSmall);
  const Grid grid = grid_of({"/name=a,b", "/cluster/node=dgx-a100", "/cluster/gpus_per_node=8", "/policy={},{\"sharding\": \"FULL_SHARD\"}"});
  const SweepPlan plan = cli::make_plan(scenario, grid, 1);
  CHECK(plan.uniques.size() == 1);
  SweepStore store;
  CHECK(cli::run_sweep({scenario, grid, plan, 2}, store).simulated == 1);
  CHECK(cli::run_sweep({scenario, grid, plan, 2}, store).simulated == 0);
}

TEST_CASE("a program is built once for neighbours that only change hardware or allocator") {
  const ScenarioTemplate scenario("7b-32xa100", kSmall);
  const Grid grid = grid_of({"/cluster/nic_rate=100 Gb/s,200 Gb/s", "/batch/micro_batch=1,2", "/allocator/expandable_segments=true,false"});
  const SweepPlan plan = cli::make_plan(scenario, grid, 1);
  SweepStore store;
  const cli::SweepCounts counts = cli::run_sweep({scenario, grid, plan, 1}, store);
  CHECK(counts.simulated == 8);
  CHECK(counts.programs == 2);
}

TEST_CASE("a combination that the rules refuse is a point; a value that nothing accepts is a mistake") {
  const ScenarioTemplate scenario("7b-32xa100", kSmall);
  const Grid grid = grid_of({"/policy/framework=fsdp1,fsdp2", "/policy/forward_prefetch=false,true"});
  const SweepPlan plan = cli::make_plan(scenario, grid, 1);
  CHECK(plan.uniques.size() == 3);
  CHECK(plan.unique_of(3) == nullptr);
  CHECK(plan.unique_of(2) != nullptr);
  CHECK(plan.refusal(3).find("/policy/forward_prefetch") != std::string::npos);
  CHECK_THROWS_AS(cli::make_plan(scenario, grid_of({"/policy/sharding=FULL_SHARD,FULL_SHRD"}), 1), InputError);
  CHECK_THROWS_AS(cli::make_plan(scenario, grid_of({"/no/such=1,2"}), 1), InputError);
}

TEST_CASE("a point that does not fit says how much is missing: with that much more it fits") {
  const ScenarioTemplate scenario("7b-32xa100", Texts{"/batch/micro_batch=6", "/run/steps=3"});
  const scenarios::Scenario failing = scenario.with({});
  const Json point = cli::point_of(failing, cli::program_of(failing));
  REQUIRE(point["report"]["outcome"] == "out_of_memory");
  const auto missing = point["missing_bytes"].get<std::int64_t>();
  CHECK(missing > 0);
  const auto device = point["report"]["out_of_memory"]["device_bytes"].get<std::int64_t>();
  const auto with = [&](std::int64_t bytes) {
    return cli::predict(scenario.with(Texts{"/allocator/device_memory=" + std::to_string(bytes) + " B"})).report.outcome;
  };
  CHECK(with(device + missing + (1 << 21)) == "ok");
  CHECK(with(device + missing * 3 / 4) == "out_of_memory");
}

TEST_CASE("a store keeps what a stopped sweep had done, cuts an unfinished line off, and refuses other files") {
  const test::TemporaryFile file("");
  std::remove(file.path().c_str());
  {
    SweepStore store(file.path(), "1");
    store.add(1, R"({"report":{"outcome":"ok"}})");
    store.add(0xfedcba9876543210, R"({"report":{"outcome":"deadlock"}})");
  }
  file.append(R"({"key":"0000000000000003","poi)");
  {
    SweepStore store(file.path(), "1");
    CHECK(store.get(1) == R"({"report":{"outcome":"ok"}})");
    CHECK(store.get(0xfedcba9876543210) == R"({"report":{"outcome":"deadlock"}})");
    CHECK(!store.has(3));
    store.add(3, R"({"report":{"outcome":"ok","x":1}})");
  }
  CHECK(SweepStore(file.path(), "1").get(3) == R"({"report":{"outcome":"ok","x":1}})");
  CHECK_THROWS_AS(SweepStore(file.path(), "2"), InputError);  // another build may forecast otherwise
  file.append("{}\n");
  CHECK_THROWS_AS(SweepStore(file.path(), "1"), InputError);
  CHECK_THROWS_AS(SweepStore(test::TemporaryFile("something else\n").path(), "1"), InputError);
}

TEST_CASE("the table shows what is missing and the fastest, the CSV every figure") {
  const Grid grid = grid_of({"/batch/micro_batch=1,2,4"});
  cli::PointRow ok, faster, failed;
  ok.outcome = faster.outcome = "ok";
  ok.bound = faster.bound = "compute";
  ok.step_time_s = 2;
  ok.tokens_per_s_per_gpu = 1000;
  faster.step_time_s = 2.5;
  faster.tokens_per_s_per_gpu = 1600;
  failed.outcome = "out_of_memory";
  failed.missing_bytes = std::int64_t{3} << 30;
  const std::vector<cli::PointRow> rows = {ok, faster, failed};
  const std::string text = table_of(grid, rows, 100);
  CHECK(text.find("out of memory: 3.000 GiB missing") != std::string::npos);
  CHECK(text.find("3 points, 1 out of memory") != std::string::npos);
  CHECK(text.find("fastest: /batch/micro_batch=2: 1,600 tokens/s/GPU, bound by compute") != std::string::npos);
  CHECK(table_of(grid, rows, 1).find("1,000") == std::string::npos);
  std::string csv = cli::sweep_csv_header(grid);
  for (std::size_t i = 0; i < rows.size(); ++i) csv += cli::sweep_csv_line(grid, i, rows[i]);
  CHECK(csv.find("\n2,ok,2.5,1600,,,0,0,,,compute\n") != std::string::npos);
  CHECK(csv.find("\n4,out_of_memory,,,,,,,,3221225472,\n") != std::string::npos);
}

TEST_CASE("a table that keeps the fastest alone is that of all points sorted, equal ones in the grid's order") {
  const Grid grid = grid_of({"/run/seed=1..2000"});
  std::vector<cli::PointRow> rows(grid.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].outcome = i % 7 == 0 ? "out_of_memory" : "ok";
    rows[i].step_time_s = 1;
    rows[i].tokens_per_s_per_gpu = i % 7 == 0 ? 0 : static_cast<double>(i * 7919 % 613);
  }
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rows[a].tokens_per_s_per_gpu > rows[b].tokens_per_s_per_gpu; });
  const std::string text = table_of(grid, rows, 9);
  std::size_t from = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    const std::size_t at = text.find("\n  " + std::to_string(order[i] + 1) + " ", from);
    REQUIRE_MESSAGE(at != std::string::npos, i);
    from = at + 1;
  }
  CHECK(text.find("2,000 points, 286 out of memory; the 9 fastest are shown") != std::string::npos);
}

TEST_CASE("progress says how long it still takes, by what it took so far") {
  CHECK(cli::progress_text("sweep", 0, 1000, 0) == "sweep: 0 of 1,000 points");
  CHECK(cli::progress_text("sweep", 250, 1000, 5) == "sweep: 250 of 1,000 points, 15 s left");
  CHECK(cli::progress_text("sweep", 1000, 1000, 20) == "sweep: 1,000 of 1,000 points");
}
