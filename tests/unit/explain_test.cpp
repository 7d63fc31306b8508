// From the peak to the MFU: the losses add up to the step to the picosecond's rounding, in every policy, and each loss is where it should be. docs/report.md, "Explain".
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/report/cost.hpp"
#include "cli/report/explain.hpp"
#include "hw_models/input_error.hpp"
#include "support/forecast.hpp"

using namespace stepcast;

namespace {

cli::Explanation explained(std::vector<std::string> sets) {
  sets.insert(sets.begin(), {"/run/steps=3", "/model/layers=4"});
  return cli::explain(test::forecast("7b-32xa100", sets));
}

double of(const cli::Explanation& e, const std::string& part) {
  double seconds = 0;
  for (const cli::Loss& loss : e.losses) seconds += loss.name.find(part) != std::string::npos ? loss.seconds : 0;
  return seconds;
}

}  // namespace

TEST_CASE("the losses and the model's FLOPs are the step, whatever the settings") {
  for (const std::vector<std::string>& sets : {std::vector<std::string>{},
                                               {"/policy/framework=fsdp2"},
                                               {"/policy/backward_prefetch=NONE", "/recompute/mode=full"},
                                               {"/policy/framework=ddp"},
                                               {"/policy/framework=zero3"},
                                               {"/kernels/set=pytorch-compile", "/batch/grad_accum=2"},
                                               {"/kernels/attention=unfused"},
                                               {"/loader/batch_time=10 s", "/loader/workers=2"}}) {
    const cli::Explanation e = explained(sets);
    double sum = e.ideal_s;
    for (const cli::Loss& loss : e.losses) sum += loss.seconds;
    CHECK(sum == doctest::Approx(e.step_s).epsilon(1e-9));
  }
}

TEST_CASE("each loss is where it should be") {
  const cli::Explanation plain = explained({}), recomputed = explained({"/recompute/mode=full"}), serial = explained({"/policy/backward_prefetch=NONE"});
  CHECK(of(plain, "recomputation") == 0);
  CHECK(of(recomputed, "recomputation") > 0);
  CHECK(of(serial, "exposed all-gather") > of(plain, "exposed all-gather"));
  CHECK(of(plain, "masked pairs") < 0);
  CHECK(of(plain, "contention") > 0);
  CHECK(of(explained({"/cluster/nodes=1", "/cluster/gpus_per_node=1", "/model/layers=2"}), "exposed") == 0);
  CHECK(of(explained({"/loader/batch_time=10 s", "/loader/workers=2"}), "data") > of(plain, "data"));
  const auto json = cli::to_json(plain);
  CHECK(json["mfu"].get<double>() == doctest::Approx(plain.ideal_s / plain.step_s));
  CHECK(cli::to_text(plain).find("MFU") != std::string::npos);
}

TEST_CASE("without a peak or a second step there is nothing to explain") {
  CHECK_THROWS_AS(cli::explain(test::forecast("7b-32xa100", {"/run/steps=1"})), InputError);
  CHECK_THROWS_AS(cli::explain(test::forecast("7b-32xa100", {"/run/steps=2", "/batch/micro_batch=16"})), InputError);
}

TEST_CASE("cost by hand: 1e12 tokens at 1,000 tokens/s on each of 100 GPUs") {
  cli::Report report;
  report.tokens_per_s_per_gpu = 1000;
  report.ranks = 100;
  cli::Cost cost = cli::cost_of(report, {1e12, 2, 400});
  CHECK(cost.days == doctest::Approx(1e7 / 86400));
  CHECK(cost.gpu_hours == doctest::Approx(1e9 / 3600));
  CHECK(cost.price == doctest::Approx(2e9 / 3600));
  CHECK(cost.price_per_million_tokens == doctest::Approx(2e3 / 3600));
  CHECK(cost.kilowatt_hours == doctest::Approx(0.4e9 / 3600));
  CHECK_FALSE(cost.relative);
  CHECK_FALSE(to_json(cost).contains("interval"));
  report.step_time_s = 2;
  report.interval = {10, 0, 1, {1.8, 2.1, 3}, {}, {}};
  cost = cli::cost_of(report, {1e12, 2, 0});
  const auto json = to_json(cost);
  CHECK(json["interval"]["p10"]["days"].get<double>() == doctest::Approx(0.9e7 / 86400));
  CHECK(json["interval"]["p90"]["price"].get<double>() == doctest::Approx(3e9 / 3600));
  CHECK_FALSE(json.contains("kilowatt_hours"));  // not asked
  REQUIRE(lines_of(cost).size() == 4);
  CHECK(lines_of(cost)[0].value == "115.7");
  CHECK(lines_of(cost)[0].range == "104.2 to 173.6");
}
