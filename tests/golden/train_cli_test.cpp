// `stepcast train` and `stepcast bench` as a user meets them. docs/real_backend.md.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "support/paths.hpp"
#include "support/place.hpp"

using Json = nlohmann::ordered_json;
using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line;

namespace {

const char* kTiny = R"({
  "schema": "stepcast.scenario/1", "name": "tiny",
  "model": {"style": "llama", "hidden": 32, "layers": 3, "heads": 4, "kv_heads": 2, "head_dim": 8, "ffn": 80, "vocab": 64},
  "cluster": {"node": "dgx-a100", "gpus_per_node": 1, "nodes": 1},
  "batch": {"micro_batch": 8, "seq_len": 12},
  "precision": {"param": "fp64", "reduce": "fp64", "master": "fp64"},
  "run": {"steps": 6}
})";

}  // namespace

TEST_CASE("train with the closed formulas: PyTorch's losses, the same on two ranks, and a report") {
  const Place place;
  place.file("tiny.json", kTiny);
  const Outcome one = place.run("train tiny.json --device host --closed-form --json");
  REQUIRE_MESSAGE(one.code == 0, one.err);
  const Outcome two = place.run("train tiny.json --closed-form --ranks 2 --set /batch/micro_batch=4 --json --out out");
  REQUIRE_MESSAGE(two.code == 0, two.err);
  const Json a = Json::parse(one.out), b = Json::parse(two.out);
  CHECK(a["schema"] == "stepcast.train/1");
  CHECK(a["outcome"] == "ok");
  REQUIRE(a["training"].size() == 6);
  CHECK(a["training"][0]["loss"].get<double>() == doctest::Approx(4.296621554122459).epsilon(1e-9));
  CHECK(a["training"][0]["grad_norm"].get<double>() == doctest::Approx(2.122139486686993).epsilon(1e-9));
  for (std::size_t k = 0; k < 6; ++k) CHECK(b["training"][k]["loss"].get<double>() == doctest::Approx(a["training"][k]["loss"].get<double>()).epsilon(1e-9));
  CHECK(a["final_parameters"].size() == 30);
  CHECK(b["ranks"] == 2);
  CHECK(b["step_time_s"].get<double>() > 0);
  CHECK(b["collectives"]["all_gather"]["calls"].get<int>() > 0);
  CHECK(b["peak_allocated_bytes"].get<std::int64_t>() > 0);
  for (const char* file : {"out/report.json", "out/report.txt", "out/trace.json.gz"}) CHECK_FALSE(stepcast::test::read(place / file).empty());
}

TEST_CASE("memory of a run is that of its forecast: one allocator, one program") {
  const Place place;
  place.file("tiny.json", kTiny);
  const std::string sets = " --set /precision/param=bf16 --set /precision/reduce=fp32 --set /precision/master=fp32 --set /host/sync_each_step=true --json";
  const Outcome run = place.run("run tiny.json --set /kernels/set=native" + sets), real = place.run("train tiny.json" + sets);
  REQUIRE_MESSAGE(run.code == 0, run.err);
  REQUIRE_MESSAGE(real.code == 0, real.err);
  const Json forecast = Json::parse(run.out), measured = Json::parse(real.out);
  for (const char* key : {"peak_allocated_bytes", "peak_reserved_bytes", "num_device_mallocs"}) CHECK(forecast[key] == measured[key]);
}

TEST_CASE("what can't be run is refused; a run that fails says why in one line") {
  const Place place;
  place.file("tiny.json", kTiny);
  const Outcome framework = place.run("train tiny.json --set /policy/framework=zero1 --set /precision/master=fp32");
  CHECK(framework.code == 2);
  CHECK(has(framework.err, "/policy/framework"));
  CHECK(place.run("train tiny.json --device gpu").code == 2);
  const Outcome memory = place.run("train tiny.json --set /allocator/device_memory=\"2 MiB\"");
  CHECK(memory.code == 4);
  CHECK(has(memory.err, "rank 0: out of memory: no room for"));
  CHECK(one_line(memory.err));
  const Outcome kept = place.run("train tiny.json --set /allocator/device_memory=\"2 MiB\" --json --out kept");
  CHECK(kept.code == 4);
  CHECK(Json::parse(kept.out)["outcome"] == "out_of_memory");
  // How many steps are done by then is a matter of when deferred frees come back; each of them is that of the run that has room.
  const Json done = Json::parse(kept.out)["training"], whole = Json::parse(place.run("train tiny.json --json").out)["training"];
  REQUIRE(whole.size() == 6);
  REQUIRE(done.size() < 6);
  for (std::size_t k = 0; k < done.size(); ++k) {
    CHECK(done[k]["loss"] == whole[k]["loss"]);
    CHECK(done[k]["grad_norm"] == whole[k]["grad_norm"]);
  }
  CHECK(Json::parse(stepcast::test::read(place / "kept/report.json")) == Json::parse(kept.out));
}

TEST_CASE("train on GPUs gives the host's losses; without GPUs, or without the driver, it says so in one line") {
  const Place place;
  place.file("tiny.json", kTiny);
  const Outcome cuda = place.run("train tiny.json --device cuda --closed-form --json");
  if (cuda.code == 2) {
    CHECK(has(cuda.err, "--device cuda: "));
    CHECK(one_line(cuda.err));
    // The program with the driver, where there is one, has taken over.
    CHECK(has(cuda.err, "has no CUDA driver") != std::filesystem::exists(stepcast::test::binary() + "-cuda"));
    MESSAGE("skipped: " << cuda.err);
    return;
  }
  REQUIRE_MESSAGE(cuda.code == 0, cuda.err);
  const Outcome host = place.run("train tiny.json --closed-form --json");
  const Json a = Json::parse(cuda.out), b = Json::parse(host.out);
  CHECK(a["machine"]["device"] == "cuda");
  for (std::size_t k = 0; k < 6; ++k) CHECK(a["training"][k]["loss"].get<double>() == doctest::Approx(b["training"][k]["loss"].get<double>()).epsilon(1e-9));
  CHECK(a["peak_allocated_bytes"] == b["peak_allocated_bytes"]);
}

TEST_CASE("bench writes what calibrate reads") {
  const Place place;
  place.file("tiny.json", kTiny);
  const Outcome bench = place.run(
      "bench tiny.json --seconds 0.01 --set /precision/param=fp32 --set /precision/reduce=fp32 --set /precision/master=fp32 --ranks 2 --out host.json");
  REQUIRE_MESSAGE(bench.code == 0, bench.err);
  const Json file = Json::parse(stepcast::test::read(place / "host.json"));
  CHECK(place.run("bench --seconds 0.01 --out host.json").code == 2);  // is there
  CHECK(file["schema"] == "stepcast.bench/1");
  std::size_t gemms = 0;
  for (const Json& row : file["rows"]) gemms += row["what"] == "gemm" ? 1u : 0u;
  CHECK(gemms > 5);
  const Outcome read = place.run("calibrate host.json --gpu a100-sxm4-80gb");
  CHECK_MESSAGE(read.code != 2, read.err);
}
