// bench, calibrate, run and validate --scenarios as a user meets them: that they fit together, not how near a forecast comes. docs/validate.md, "Scenarios".
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/place.hpp"

using Json = nlohmann::ordered_json;
using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line;

namespace {

const char* kTinyOnTwo = R"({
  "schema": "stepcast.scenario/1", "name": "tiny",
  "model": {"style": "llama", "hidden": 32, "layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 8, "ffn": 80, "vocab": 64},
  "cluster": {"node": "host-threads", "gpus_per_node": 2, "nodes": 1},
  "batch": {"micro_batch": 2, "seq_len": 12},
  "precision": {"param": "fp32", "reduce": "fp32", "master": "fp32"},
  "kernels": {"set": "native"},
  "host": {"sync_each_step": true},
  "run": {"steps": 4}
})";

}  // namespace

TEST_CASE("bench, calibrate, run: the forecast stands on what was measured") {
  const Place place;
  place.file("tiny.json", kTinyOnTwo);
  const Outcome bench = place.run("bench tiny.json --seconds 0.01 --out host.json");
  REQUIRE_MESSAGE(bench.code == 0, bench.err);
  const Outcome calibrated = place.run("calibrate host.json --gpu host-cpu --node host-threads --out machine");
  REQUIRE_MESSAGE(calibrated.code == 0, calibrated.err);
  CHECK(has(calibrated.out, "kernels and"));
  const std::string on = "run tiny.json --json --set /cluster/node=machine/node.json --set /cluster/gpu=machine/gpu.json";
  const Outcome run = place.run(on);
  REQUIRE_MESSAGE(run.code == 0, run.err);
  const double step = Json::parse(run.out)["step_time_s"].get<double>();
  // Kernels of ten seconds make a step longer than any machine's.
  Json gpu = Json::parse(stepcast::test::read(place / "machine/gpu.json"));
  REQUIRE(gpu["measured"].size() > 15);
  for (Json& row : gpu["measured"]) row["value"] = "10 s";
  place.file("slow.json", gpu.dump());
  const Outcome slow = place.run(on + " --set /cluster/gpu=slow.json");
  REQUIRE_MESSAGE(slow.code == 0, slow.err);
  CHECK(Json::parse(slow.out)["step_time_s"].get<double>() > step);
  CHECK(Json::parse(slow.out)["step_time_s"].get<double>() > 100);
}

TEST_CASE("validate --scenarios: one row per scenario, memory exact, files that can be read again") {
  const Place place;
  std::filesystem::create_directory(place / "loop");
  place.file("loop/a.json", kTinyOnTwo);
  place.file("loop/b.json", R"({"schema": "stepcast.scenario/1", "name": "b", "base": "a.json", "policy": {"framework": "fsdp2"}})");
  const Outcome loop = place.run("validate --scenarios loop --device host --rounds 2 --seconds 0.001 --json --out out --csv rows.csv");
  REQUIRE_MESSAGE(loop.code == 0, loop.err);
  const Json json = Json::parse(loop.out);
  CHECK(json["schema"] == "stepcast.closed_loop/1");
  REQUIRE(json["rows"].size() == 2);
  for (const Json& row : json["rows"]) {
    CHECK(row["ranks"] == 2);
    CHECK(row["predicted"]["step_time_s"].get<double>() > 0);
    CHECK(row["measured"]["step_time_s"].get<double>() > 0);
    CHECK(row["predicted"]["peak_allocated_bytes"] == row["measured"]["peak_allocated_bytes"]);
  }
  CHECK(json["summary"]["count"] == 2);
  for (const char* file : {"out/report.json", "out/report.csv", "out/measurements.json", "out/gpu.json", "out/node.json", "rows.csv"})
    CHECK_FALSE(stepcast::test::read(place / file).empty());
  const Outcome again = place.run("validate --scenarios loop --measurements out/measurements.json --rounds 1");
  CHECK_MESSAGE(again.code == 0, again.err);
  CHECK(has(again.out, "Step time of 2 scenarios"));
  CHECK(place.run("run loop/a.json --set /cluster/node=out/node.json --set /cluster/gpu=out/gpu.json").code == 0);
}

TEST_CASE("What can't be done is refused; a scenario that fails leaves the others") {
  const Place place;
  std::filesystem::create_directory(place / "loop");
  CHECK(place.run("validate").code == 2);
  const Outcome empty = place.run("validate --scenarios loop");
  CHECK(empty.code == 2);
  CHECK(has(empty.err, "holds no scenario"));
  CHECK(place.run("validate --scenarios nowhere").code == 2);
  place.file("loop/a.json", kTinyOnTwo);
  CHECK(place.run("validate --scenarios loop --tier A").code == 2);
  CHECK(place.run("validate runs.csv --rounds 3").code == 2);
  CHECK(place.run("validate --scenarios loop --set /cluster/nodes=2").code == 2);
  place.file("bad.json", R"({"schema": "stepcast.bench/1", "machine": {}, "rows": [{"what": "gemm"}]})");
  const Outcome bad = place.run("validate --scenarios loop --measurements bad.json");
  CHECK(bad.code == 2);
  CHECK(has(bad.err, "/rows/0"));
  place.file("loop/b.json", R"({"schema": "stepcast.scenario/1", "name": "b", "base": "a.json", "allocator": {"device_memory": "2 MiB"}})");
  const Outcome failed = place.run("validate --scenarios loop --rounds 1 --seconds 0.001");
  CHECK(failed.code == 3);
  CHECK(has(failed.out, "b: rank"));
  CHECK(has(failed.out, "Step time of 1 scenarios"));
}
