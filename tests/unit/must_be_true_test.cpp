// Crossings of known functions; answers about a scenario against brute force and against forecasts with what they say. docs/questions.md, "What must be true".
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/run/must_be_true.hpp"
#include "hw_models/input_error.hpp"
#include "support/forecast.hpp"

using namespace stepcast;

namespace {

cli::Report of_mfu(double mfu) {
  cli::Report report;
  report.mfu = mfu;
  return report;
}

cli::Crossing crossing(const std::function<double(double)>& mfu, double wanted) {
  return cli::first_crossing([&](double factor) { return of_mfu(mfu(factor)); }, [&](const cli::Report& r) { return r.mfu >= wanted; }, 1, 2);
}

scenarios::Scenario short_run(std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(), {"/run/steps=3", "/model/layers=4", "/batch/seq_len=1024", "/batch/micro_batch=1"});
  return scenarios::read_scenario("7b-32xa100", sets);
}

cli::Answers answered(const scenarios::Scenario& scenario, const cli::QuestionSettings& settings = {}) {
  return cli::must_be_true(scenario, cli::predict(scenario).report, settings);
}

bool fits(scenarios::Scenario scenario, std::int64_t micro_batch) {
  scenario.batch.micro_batch = micro_batch;
  return cli::predict(scenario).report.outcome == "ok";
}

double gathers_exposed(const cli::Report& report) {
  for (const auto& row : report.collectives) {
    if (row.kind == "all_gather") return row.exposed_s / report.step_time_s;
  }
  return 0;
}

}  // namespace

TEST_CASE("crossings of functions that are known") {
  const cli::Crossing rising = crossing([](double f) { return 1 - 1 / f; }, 0.9);  // from 10 on
  CHECK(rising.reached);
  CHECK(rising.factor >= 10);
  CHECK(rising.factor <= 10 * (1 + cli::kFactorPrecision));
  CHECK(rising.every_larger);
  CHECK_FALSE(rising.beyond);
  const cli::Crossing never = crossing([](double f) { return 0.5 - 1 / f / 2; }, 0.9);
  CHECK_FALSE(never.reached);
  CHECK(never.factor == cli::kLargestFactor);
  const cli::Crossing bump = crossing([](double f) { return f > 3 && f < 5 ? 1.0 : 0.0; }, 0.9);
  CHECK(bump.reached);
  CHECK(bump.factor == doctest::Approx(3).epsilon(cli::kFactorPrecision));
  CHECK_FALSE(bump.every_larger);
  const cli::Crossing already = crossing([](double) { return 1.0; }, 0.9);
  CHECK(already.beyond);
  CHECK(already.factor == 1);
}

TEST_CASE("the bandwidth that hides the gathers does, and a little less does not") {
  const scenarios::Scenario scenario = short_run({"/batch/seq_len=256"});
  cli::QuestionSettings settings;
  settings.exposed_below = 0.1;
  const cli::Answers answers = answered(scenario, settings);
  const cli::HiddenAnswer& network = answers.hidden.front();
  CHECK(network.what == "all-gather");
  CHECK(network.lever == "bandwidth between nodes");
  CHECK(network.share_now > 0.1);
  const auto forecast_at = [&](double factor) {
    cli::Hardware hardware = cli::hardware_of(scenario);
    for (const char* rate : {"nic_rate", "nic_limit"}) hardware.cluster.node.constants.at(rate).value *= factor;
    return cli::forecast(scenario, cli::program_of(scenario), &hardware);
  };
  if (network.crossing.reached) {
    CHECK(gathers_exposed(forecast_at(network.crossing.factor)) < 0.1);
    CHECK(gathers_exposed(forecast_at(network.crossing.factor / 1.011)) >= 0.1);
  } else {
    for (double factor = 1; factor <= 1024; factor *= 2) CHECK(gathers_exposed(forecast_at(factor)) >= 0.1);
  }
}

TEST_CASE("one node has no network to speed up; without NVLink PCIe is the lever") {
  const auto names = [](const scenarios::Scenario& scenario) {
    std::string all;
    for (const cli::Lever& lever : cli::links(scenario)) all += lever.name + ";";
    return all;
  };
  CHECK(names(short_run()) == "bandwidth between nodes;bandwidth of NVLink;");
  CHECK(names(short_run({"/cluster/nodes=1"})) == "bandwidth of NVLink;");
  CHECK(names(short_run({"/cluster/nodes=1", "/cluster/nvlink=none"})) == "bandwidth of PCIe;");
  CHECK(names(short_run({"/cluster/nodes=1", "/cluster/gpus_per_node=1"})).empty());
}

TEST_CASE("the largest micro-batch is that of trying them all, and what one more needs is enough") {
  const scenarios::Scenario scenario = short_run({"/allocator/device_memory=16 GiB"});
  const cli::BatchAnswer largest = answered(scenario).largest;
  std::int64_t by_hand = 0;
  while (fits(scenario, by_hand + 1)) ++by_hand;
  CHECK(by_hand > 1);
  CHECK(largest.micro_batch == by_hand);
  scenarios::Scenario more = scenario;
  more.allocator.device_memory = *scenario.allocator.device_memory + largest.missing_bytes;
  CHECK(fits(more, by_hand + 1));
}

TEST_CASE("where nothing runs only what fits is answered") {
  const cli::Answers answers = answered(short_run({"/allocator/device_memory=4 GiB"}), {0.01, 0.9, 2});
  CHECK_FALSE(answers.ran);
  CHECK(answers.hidden.empty());
  CHECK(answers.largest.micro_batch == 0);
  CHECK(answers.largest.missing_bytes > 0);
  CHECK_FALSE(cli::to_json(answers).contains("target"));
  CHECK(cli::to_text(answers).find("none; one sequence needs") != std::string::npos);
}

TEST_CASE("an MFU: the change that is named reaches it") {
  const scenarios::Scenario scenario = short_run({"/batch/seq_len=512"});
  const cli::Report now = cli::predict(scenario).report;
  const cli::Answers answers = answered(scenario, {0.01, now.mfu + 0.03, 2});
  REQUIRE(answers.target_batch);
  const cli::TargetBatchAnswer& batch = *answers.target_batch;
  REQUIRE(batch.micro_batch > 1);
  for (std::int64_t m = 2; m <= batch.micro_batch; ++m) {
    scenarios::Scenario larger = scenario;
    larger.batch.micro_batch = m;
    CHECK((cli::predict(larger).report.mfu >= now.mfu + 0.03) == (m == batch.micro_batch));
  }
  const cli::TargetAnswer& host = answers.target.back();
  CHECK(host.lever == "speed of the host");
  if (host.crossing.reached) {
    scenarios::Scenario faster = scenario;
    faster.host.scale /= host.crossing.factor;
    CHECK(cli::predict(faster).report.mfu >= now.mfu + 0.03);
  }
  const cli::Answers met = answered(scenario, {0.01, now.mfu, 2});
  CHECK_FALSE(met.target_batch);
  CHECK(cli::to_json(met)["target"]["met"] == true);
}

TEST_CASE("more memory than there is, for a micro-batch that would reach it") {
  const scenarios::Scenario scenario = short_run({"/batch/seq_len=512", "/allocator/device_memory=13 GiB"});
  const cli::Report now = cli::predict(scenario).report;
  REQUIRE(now.outcome == "ok");
  cli::QuestionSettings settings{0.01, 0, 2};
  scenarios::Scenario eight = scenario;
  eight.batch.micro_batch = 8;
  eight.allocator.device_memory = std::int64_t{60} << 30;
  settings.target_mfu = cli::predict(eight).report.mfu;
  const cli::TargetBatchAnswer batch = answered(scenario, settings).target_batch.value();
  CHECK(batch.micro_batch <= 8);
  CHECK(batch.micro_batch > 1);
  CHECK((batch.missing_bytes > 0) == !fits(scenario, batch.micro_batch));
}

TEST_CASE("fixed costs don't depend on hardware") {
  scenarios::Scenario fixed = short_run();
  fixed.fixed_costs.emplace();
  CHECK_THROWS_AS(cli::must_be_true(fixed, {}, {}), InputError);
}
