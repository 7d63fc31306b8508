// From a trace to a scenario as a user does it: written, run, compared; what is missing, and filled in. docs/diagnose.md, "From a trace to a scenario".
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/place.hpp"
#include "support/profile_json.hpp"

using Json = nlohmann::ordered_json;
using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line, stepcast::test::ProfileJson;

namespace {

const std::string kRun = "run 7b-32xa100 --set /model/layers=4 --set /batch/seq_len=1024 --set /policy/backward_prefetch=NONE --out out";

}  // namespace

TEST_CASE("a simulated trace becomes a scenario that runs, takes the same time, and forecasts what prefetching gains") {
  const Place place;
  REQUIRE(place.run(kRun).code == 0);
  const Outcome r = place.run("diagnose --json out/trace.json.gz --scenario mine.json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json json = Json::parse(r.out);
  CHECK(json["scenario"]["complete"] == true);
  CHECK(json["utilisation"]["mfu"].get<double>() > 0.05);
  const Json& step = json["predicted_beside_traced"]["per_step"][0];
  CHECK(step["name"] == "step");
  CHECK(step["predicted_us"].get<double>() == doctest::Approx(step["traced_us"].get<double>()).epsilon(0.001));
  const Json document = Json::parse(stepcast::test::read(place / "mine.json")), keys = Json::parse(stepcast::test::read(place / "mine.keys.json"));
  CHECK(document["model"]["hidden"] == 4096);
  CHECK(document["policy"]["backward_prefetch"] == "NONE");
  CHECK(keys["schema"] == "stepcast.inferred/1");
  const Outcome run = place.run("run --json mine.json");
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(Json::parse(run.out)["step_time_s"].get<double>() * 1e6 == doctest::Approx(step["traced_us"].get<double>()).epsilon(0.001));
  for (const Json& finding : json["findings"]) {
    if (finding["finding"] != "serialised_all_gathers") continue;
    CHECK(finding["forecast_by"] == "simulation");
    CHECK(finding["forecast_gain"].get<double>() > 0);
  }
  const Outcome text = place.run("diagnose out/trace.json.gz --scenario mine.json --force");
  REQUIRE_MESSAGE(text.code == 0, text.err);
  CHECK(has(text.out, "MFU "));
  CHECK(has(text.out, "/policy/backward_prefetch"));
  CHECK(has(text.out, "predicted / traced"));
}

TEST_CASE("the trace of a real run becomes the scenario that ran") {
  const Place place;
  place.file(
      "tiny.json",
      R"({"model": {"hidden": 64, "layers": 3, "heads": 4, "kv_heads": 2, "ffn": 96, "vocab": 256}, "batch": {"micro_batch": 2, "seq_len": 16, "grad_accum": 2},
    "cluster": {"node": "host-threads", "gpus_per_node": 2, "nodes": 1}, "kernels": {"set": "native"}, "precision": {"param": "fp32", "reduce": "fp32"},
    "policy": {"backward_prefetch": "NONE"}, "recompute": {"mode": "full"}, "run": {"steps": 3, "wait": 0, "warmup": 1, "active": 2}})");
  const Outcome train = place.run("train tiny.json --out out");
  REQUIRE_MESSAGE(train.code == 0, train.err);
  const Outcome r = place.run("diagnose --json out/trace.json.gz --scenario mine.json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json document = Json::parse(r.out)["scenario"]["document"];
  const Json model = document["model"], batch = document["batch"];
  CHECK(model["hidden"] == 64);
  CHECK(model["layers"] == 3);
  CHECK(model["heads"] == 4);
  CHECK(model["kv_heads"] == 2);
  CHECK(model["ffn"] == 96);
  CHECK(model["vocab"] == 256);
  CHECK(batch == Json{{"micro_batch", 2}, {"seq_len", 16}, {"grad_accum", 2}});
  CHECK(document["policy"]["backward_prefetch"] == "NONE");
  CHECK(document["recompute"]["mode"] == "full");
  CHECK(document["kernels"]["set"] == "native");
  CHECK(document["precision"]["param"] == "fp32");
  CHECK(Json::parse(r.out)["scenario"]["complete"] == true);
}

TEST_CASE("what a trace does not show is missing, and --model and --set fill it in") {
  const Place place;
  place.file("t.json", ProfileJson()
                           .range("ProfilerStep#0", 0, 500)
                           .call("cudaLaunchKernel", 5, 2, 1)
                           .kernel("gemm", 10, 90, 7, 1)
                           .text("\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA A100-SXM4-80GB\"}],"));
  const Outcome r = place.run("diagnose t.json --scenario mine.json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  CHECK(has(r.out, "It can't be run yet"));
  CHECK(has(r.out, "--set /model/hidden=VALUE"));
  CHECK(has(r.out, "--set /batch/seq_len=VALUE"));
  const Outcome filled = place.run(
      "diagnose --json t.json --model llama-2-7b --set /batch/seq_len=2048 --set /batch/micro_batch=1 --set /model/layers=2 --scenario mine.json --force");
  REQUIRE_MESSAGE(filled.code == 0, filled.err);
  CHECK(Json::parse(filled.out)["scenario"]["complete"] == true);
  CHECK(place.run("run mine.json").code == 0);
}

TEST_CASE("experts that run in grouped products become a model with experts") {
  ProfileJson trace;
  int place = 0;
  const auto op = [&](const std::string& name, const std::string& dims) {
    ++place;
    trace.event("cpu_op", name, 10 * place, 8, 1,
                fmt::format(R"("External id":{},"Input Dims":[{}],"Input type":["c10::BFloat16"],"Sequence number":{})", place, dims, place));
    trace.call("cudaLaunchKernel", 10 * place + 2, 3, place);
    trace.raw(fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":{},"dur":8,"args":{{"device":0,"stream":7,"correlation":{},"External id":{}}}}})",
        10 * place + 6, place, place));
  };
  for (int block = 0; block < 2; ++block) {
    for (int i = 0; i < 4; ++i) op("aten::mm", "[512, 256], [256, 256]");
    op("aten::_scaled_dot_product_flash_attention", "[2, 4, 256, 64], [2, 4, 256, 64], [2, 4, 256, 64]");
    op("aten::mm", "[512, 256], [256, 8]");
    op("aten::_grouped_mm", "[1024, 256], [8, 256, 384], [8]");
    op("aten::_grouped_mm", "[1024, 256], [8, 256, 384], [8]");
    op("aten::_grouped_mm", "[1024, 384], [8, 384, 256], [8]");
  }
  op("aten::mm", "[512, 256], [256, 5000]");
  const Place place_of_trace;
  place_of_trace.file("t.json", trace.text("\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA H100 80GB HBM3\"}],"));
  const Outcome r = place_of_trace.run("diagnose --json t.json --scenario mine.json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json json = Json::parse(r.out);
  CHECK(json["scenario"]["complete"] == true);
  const Json& model = json["scenario"]["document"]["model"];
  CHECK(model["experts"] == Json{{"count", 8}, {"active", 2}});
  CHECK(model["ffn"] == 384);
  CHECK(model["ffn_kind"] == "swiglu");
  CHECK(model["layers"] == 2);
  CHECK(model["vocab"] == 5000);
  const Json& products = json["ranks"][0]["devices"]["0"]["matrix_products"];
  CHECK(products["flop"].get<double>() == 2 * (2.0 * 512 * 256 * (4 * 256 + 8) + 3 * 2.0 * 1024 * 256 * 384) + 2.0 * 512 * 256 * 5000);
  CHECK(json["predicted_beside_traced"]["per_step"][0]["name"] == "forward");
}

TEST_CASE("refused: a name that is no .json, files that are there, a model that is not known") {
  const Place place;
  place.file("t.json", ProfileJson().kernel("gemm", 10, 90, 7, 1).text());
  CHECK(place.run("diagnose t.json --scenario mine.txt").code == 2);
  place.file("mine.json", "{}");
  const auto there = place.run("diagnose t.json --scenario mine.json");
  CHECK(there.code == 2);
  CHECK(has(there.err, "--scenario: mine.json is there"));
  CHECK(place.run("diagnose t.json --model nonsense").code == 2);
}
