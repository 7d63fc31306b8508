// `stepcast import` and `run --config` as a user meets them. docs/import.md.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/place.hpp"

using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line;
using Json = nlohmann::ordered_json;

namespace {

const char* kAccelerate =
    "distributed_type: FSDP\nmixed_precision: bf16\nmachine_rank: 0\nnum_machines: 2\nnum_processes: 16\nfsdp_config:\n  fsdp_sharding_strategy: "
    "SHARD_GRAD_OP\n";

}  // namespace

TEST_CASE("what import prints can be run, and gives what run --config gives") {
  const Place place;
  place.file("fsdp.yaml", kAccelerate);
  const Outcome r = place.run("import fsdp.yaml --model llama-2-7b --cluster dgx-a100");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  CHECK(has(r.err, "fsdp.yaml: machine_rank ignored: "));
  place.file("imported.json", r.out);
  const Outcome file = place.run("run imported.json --json"), config = place.run("run --config fsdp.yaml --model llama-2-7b --cluster dgx-a100 --json");
  REQUIRE(file.code == 0);
  REQUIRE_MESSAGE(config.code == 0, config.err);
  CHECK(Json::parse(file.out)["step_time_s"] == Json::parse(config.out)["step_time_s"]);
  CHECK(Json::parse(file.out)["ranks"] == 16);
}

TEST_CASE("import --json names every ignored key with its reason") {
  const Place place;
  place.file("fsdp.yaml", kAccelerate);
  const Json json = Json::parse(place.run("import fsdp.yaml --model llama-2-7b --cluster dgx-a100-4 --json").out);
  CHECK(json["formats"] == Json::parse(R"(["accelerate"])"));
  CHECK(json["scenario"]["policy"]["sharding"] == "SHARD_GRAD_OP");
  CHECK(json["resolved_scenario"]["cluster"]["nodes"] == 4);
  bool found = false;
  for (const Json& one : json["ignored"]) found = found || (one["key"] == "machine_rank" && !one["reason"].get<std::string>().empty());
  CHECK(found);
}

TEST_CASE("configurations that can't be imported are exit code 2 and one line") {
  const Place place;
  place.file("fsdp.yaml", kAccelerate);
  place.file("typo.yaml", "distributed_type: FSDP\nmixed_precison: bf16\n");
  place.file("bad.yaml", "a: [\n");
  for (const char* arguments : {"import", "import fsdp.yaml", "import fsdp.yaml --cluster dgx-a100", "import typo.yaml --model llama-2-7b --cluster dgx-a100",
                                "import bad.yaml --model llama-2-7b --cluster dgx-a100", "import no-such.yaml --cluster dgx-a100",
                                "run 7b-32xa100 --config fsdp.yaml --cluster dgx-a100"}) {
    const Outcome r = place.run(arguments);
    CHECK_MESSAGE(r.code == 2, arguments);
    CHECK_MESSAGE(one_line(r.err), arguments);
    CHECK_MESSAGE(r.out.empty(), arguments);
  }
}
