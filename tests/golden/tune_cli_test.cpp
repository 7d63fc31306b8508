// `stepcast tune` as a user meets it. docs/tune.md.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/place.hpp"

using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line, stepcast::test::read;
using Json = nlohmann::ordered_json;

namespace {

// A space that is searched in a second or two: what the search finds is checked in tests/unit/tune_test.cpp.
const std::string kTune =
    "tune 7b-32xa100 --set /model/layers=2 --set /run/steps=3 --fix /kernels/attention --fix /kernels/loss --fix /kernels/set --fix /kernels/fused_norm "
    "--fix /policy/blocks_per_unit ";

}  // namespace

TEST_CASE("tune --json has the fixed shape, and its best can be run and gives what was said") {
  const Place place;
  const Outcome r = place.run(kTune + "--json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json json = Json::parse(r.out);
  for (const char* key : {"best", "evaluated", "pruned", "decisions", "settings", "front", "elasticities", "robustness"})
    CHECK_MESSAGE(json.contains(key), key);
  std::string sets;
  for (const auto& [pointer, value] : json["best"][0]["set"].items()) sets += " --set '" + pointer + "=" + value.dump() + "'";
  const Outcome run = place.run("run 7b-32xa100 --set /model/layers=2 --set /run/steps=3 --json" + sets);
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(Json::parse(run.out)["step_time_s"] == json["best"][0]["step_time_s"]);
}

TEST_CASE("tune --nodes: the best of each cluster, as a search of its own finds it") {
  const Place place;
  const Outcome r = place.run(kTune + "--nodes 1,3,4 --json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json json = Json::parse(r.out), scale = json["scale"];
  REQUIRE(scale.size() == 3);
  const Outcome alone = place.run(kTune + "--set /cluster/nodes=1 --global-batch 64 --json");  // 2 sequences on each of 32 GPUs
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
  CHECK(scale[0]["gpus"] == 8);
  CHECK(scale[0]["step_time_s"] == Json::parse(alone.out)["best"][0]["step_time_s"]);
  CHECK(has(scale[1]["refused"], "24"));  // 64 sequences don't divide among 24 GPUs
  CHECK(scale[2]["step_time_s"] == json["best"][0]["step_time_s"]);
  CHECK(scale[2]["gpu_s_per_step"].get<double>() == doctest::Approx(32 * scale[2]["step_time_s"].get<double>()));
  CHECK(has(place.run(kTune + "--nodes 1").out, "The best by number of nodes"));
}

TEST_CASE("tune as text, and its files") {
  const Place place;
  const Outcome r = place.run(kTune + "--out out");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  CHECK(has(r.out, "From the scenario to the best"));
  CHECK(has(r.out, "What would help beyond settings"));
  for (const char* name :
       {"report.json", "report.txt", "fsdp1.py", "fsdp2.py", "accelerate.yaml", "torchtitan.toml", "deepspeed.json", "llm_foundry.yaml", "environment.sh"})
    CHECK_MESSAGE(!read((place / "out") / name).empty(), name);
}

TEST_CASE("tune: nothing fits is exit code 4, what can't be tuned is exit code 2") {
  const Place place;
  CHECK(place
            .run(kTune + "--fix /policy/wrap --set '/allocator/device_memory=4 GiB' "
                         "--set /model/hidden=8192")
            .code == 4);
  for (const char* arguments : {"tune", "tune 7b-32xa100 --global-batch 33", "tune 7b-32xa100 --fix nonsense", "tune 7b-32xa100 --set /run/ranks=explicit",
                                "tune 7b-32xa100 --tolerance 2", "tune 7b-32xa100 --nodes 0", "tune 7b-32xa100 --nodes x"}) {
    const Outcome r = place.run(arguments);
    CHECK_MESSAGE(r.code == 2, arguments);
    CHECK_MESSAGE(one_line(r.err), arguments);
  }
}
