// Profiles from a table of whole runs: a machine that differs from its profile is found again by the runs that it made; what they don't tell is left as it was; runs of other machines
// are left out. docs/calibration.md, "Tables of runs".
#include "cli/calibrate/runs.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/calibrate/results.hpp"
#include "cli/hardware.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"
#include "tests/support/file.hpp"
#include "tests/support/text.hpp"

using namespace stepcast;

namespace {

const std::string kRunColumns =
    "id,source,model,d_model,n_layers,n_heads,ffn_dim,ffn_kind,vocab,seq_len,gpu,n_gpus,sharding,framework,micro_batch,grad_accum,precision,act_ckpt,attention,"
    "tokens_per_s_per_gpu\n";
constexpr double kClock = 0.9, kNetwork = 0.6;

std::string run_row(int gpus, int micro_batch, double tokens, const std::string& gpu = "a100-80gb") {
  return "r" + std::to_string(gpus) + "-" + std::to_string(micro_batch) + ",somewhere,m,4096,4,32,11008,swiglu,32000,2048," + gpu + "," + std::to_string(gpus) +
         ",FULL_SHARD,fsdp1," + std::to_string(micro_batch) + ",1,bf16,none,flash v2," + std::to_string(tokens) + "\n";
}

/// What the planted machine makes of a run: the forecast with its factors.
double speed(int gpus, int micro_batch) {
  const cli::JudgeOptions planted{.factors = {.clock = kClock, .network = kNetwork}, .gpu = "a100-sxm4-80gb", .node = "a100-400g"};
  const auto table = calibration::read_runs(kRunColumns + run_row(gpus, micro_batch, 1000), "t.csv");
  return cli::judge_row(table.runs.at(0), calibration::Sources(), planted).forecast.tokens_per_s_per_gpu;
}

std::string planted_runs() {
  std::string text = kRunColumns;
  for (const int gpus : {8, 16, 32}) {
    for (const int micro_batch : {1, 2, 4}) text += run_row(gpus, micro_batch, speed(gpus, micro_batch));
  }
  return text;
}

calibration::FitOptions holding_out(double share) {
  calibration::FitOptions fit;
  fit.hold_out = share;
  return fit;
}

}  // namespace

TEST_CASE("a planted clock and network come back from nine runs, and stand in the profiles with their source") {
  const test::TemporaryFile file(planted_runs() + run_row(64, 1, 1000, "h100-80gb"));
  const cli::RunCalibration c = cli::calibrate_runs(file.path(), "a100-sxm4-80gb", "a100-400g", holding_out(0.25), 2);
  CHECK(c.factors[0].value == doctest::Approx(kClock).epsilon(0.01));
  CHECK(c.factors[1].value == doctest::Approx(kNetwork).epsilon(0.05));
  REQUIRE(c.runs.size() == 9);
  std::size_t held = 0;
  for (const cli::CalibratedRun& run : c.runs) {
    held += run.held_out ? 1 : 0;
    CHECK(run.before > 0.03);
    CHECK(std::abs(run.after) < 0.02);
  }
  CHECK(held == 2);  // a quarter of nine
  REQUIRE(c.left_out.size() == 1);
  CHECK(test::has(c.left_out.begin()->first, "of another GPU"));
  const hw::Profile gpu = hw::gpu_profile("a100-sxm4-80gb"), node = hw::node_profile("a100-400g");
  CHECK(c.gpu.at("sustained_clock") == doctest::Approx(gpu.at("sustained_clock") * c.factors[0].value));
  CHECK(c.gpu.constants.at("sustained_clock").origin == hw::Origin::fitted);
  CHECK(test::has(c.gpu.constants.at("sustained_clock").source, "7 runs of stepcast-file-"));
  CHECK(c.node.at("network_efficiency") == doctest::Approx(node.at("network_efficiency") * c.factors[1].value));
  CHECK(c.gpu.at("gemm_efficiency") == gpu.at("gemm_efficiency"));
}

TEST_CASE("runs on one node don't tell of networks: those constants stay, and the text says which runs would tell") {
  std::string text = kRunColumns;
  for (const int micro_batch : {1, 2, 4}) text += run_row(8, micro_batch, speed(8, micro_batch));
  const test::TemporaryFile file(text);
  const cli::RunCalibration c = cli::calibrate_runs(file.path(), "a100-sxm4-80gb", "a100-400g", holding_out(0), 1);
  CHECK(c.factors[0].value == doctest::Approx(kClock).epsilon(0.01));
  CHECK(c.node.at("network_efficiency") == hw::node_profile("a100-400g").at("network_efficiency"));
  CHECK(test::has(cli::to_text(c), "network: not determined, left as it was. Would tell: runs on several nodes"));
  CHECK(cli::to_json(c)["factors"]["network"]["determined"] == false);
  CHECK(cli::to_json(c)["errors"]["held_out"]["after"]["count"] == 0);
}

TEST_CASE("fewer than three runs are no fit, and why the others were left out is said") {
  const test::TemporaryFile file(kRunColumns + run_row(8, 1, 9000) + run_row(8, 2, 9000) + run_row(8, 4, 9000, "h100-80gb"));
  CHECK_THROWS_WITH_AS(cli::calibrate_runs(file.path(), "a100-sxm4-80gb", "dgx-a100", holding_out(0), 1),
                       doctest::Contains("2 runs can be fitted, 3 are needed; --hold-out 0 fits all; left out, e.g. r8-4: of another GPU"), InputError);
}

namespace {

/// A result as `train` writes it, of the planted machine's speed.
std::string planted_result(const std::string& gpus_per_node, int micro_batch, const std::string& outcome = "ok") {
  const std::vector<std::string> sets = {"/model/layers=4",
                                         "/cluster/nodes=1",
                                         "/cluster/node=a100-400g",
                                         "/cluster/gpus_per_node=" + gpus_per_node,
                                         "/batch/micro_batch=" + std::to_string(micro_batch),
                                         "/batch/grad_accum=1"};
  const scenarios::Scenario scenario = scenarios::read_scenario("7b-32xa100", sets);
  cli::StepForecaster forecaster(scenario);
  const double speed = forecaster.on(cli::scaled(cli::hardware_of(scenario), {.clock = kClock})).report.tokens_per_s_per_gpu;
  return nlohmann::ordered_json{{"schema", "stepcast.train/1"},
                                {"outcome", outcome},
                                {"tokens_per_s_per_gpu", speed},
                                {"resolved_scenario", scenarios::to_json(scenario)},
                                {"machine", {{"gpu", "?"}}}}
      .dump(2);
}

}  // namespace

TEST_CASE("a planted clock comes back from the results of three real runs; on another GPU they are left out; one that failed is refused") {
  const test::TemporaryFile a(planted_result("2", 1)), b(planted_result("4", 2)), c(planted_result("8", 2)), failed(planted_result("2", 1, "failed"));
  CHECK(cli::is_result(a.path()));
  CHECK(!cli::is_run_table(a.path()));
  const std::vector<std::string> files = {a.path(), b.path(), c.path()};
  const cli::RunCalibration found = cli::calibrate_results(files, "a100-sxm4-80gb", "a100-400g", holding_out(0), 2);
  CHECK(found.factors[0].value == doctest::Approx(kClock).epsilon(0.01));
  CHECK(test::has(found.gpu.constants.at("sustained_clock").source, "3 runs of"));
  CHECK(test::has(found.gpu.constants.at("sustained_clock").source, " and 2 more"));
  for (const cli::CalibratedRun& run : found.runs) CHECK(std::abs(run.after) < 0.02);
  CHECK_THROWS_WITH_AS(cli::calibrate_results(files, "h100-sxm5-80gb", "dgx-h100", holding_out(0), 1), doctest::Contains("of another GPU: a100-sxm4-80gb"),
                       InputError);
  CHECK_THROWS_WITH_AS(cli::read_result(failed.path(), "a100-sxm4-80gb", "dgx-a100"), doctest::Contains("/outcome: the run failed"), InputError);
  const auto parse = [](const std::string& scenario) {
    return cli::parse_result(R"({"schema": "stepcast.train/1", "outcome": "ok", "tokens_per_s_per_gpu": 1, "resolved_scenario": )" + scenario + "}", "r.json",
                             "a100-sxm4-80gb", "dgx-a100");
  };
  CHECK_THROWS_WITH_AS(parse(R"({"cluster": {"gpu": "x"}, "model": {"hidden": 8}})"), doctest::Contains("r.json: /resolved_scenario/model/layers: "),
                       InputError);
  CHECK_THROWS_WITH_AS(parse("7"), doctest::Contains("r.json: /resolved_scenario: expected an object"), InputError);
}

TEST_CASE("a table of runs is told from tables of measurements by its header") {
  const auto is_table = [](const std::string& text) { return cli::is_run_table(test::TemporaryFile(text).path()); };
  CHECK(is_table(kRunColumns));
  CHECK(is_table("id,\"n_gpus\",\"sharding\",\"micro_batch\"\r\n1,2\r\n"));
  CHECK(!is_table("gpu,dtype,op,batch,m,n,k,time_us\n"));
  CHECK(!is_table(""));
  CHECK(!cli::is_run_table("there-is-no-such-file.csv"));
}

TEST_CASE("each factor names its constants, and none stands for two") {
  const hw::Profile gpu = hw::gpu_profile("a100-sxm4-80gb"), node = hw::node_profile("a100-400g");
  CHECK(cli::constants_of(0, gpu, node) == std::vector<std::string>{"sustained_clock"});
  CHECK(cli::constants_of(1, gpu, node) == std::vector<std::string>{"network_efficiency"});
  CHECK(cli::constants_of(2, gpu, node).size() == 3);
  for (const std::string& name : cli::constants_of(3, gpu, node)) CHECK(name.starts_with("host_"));
}
