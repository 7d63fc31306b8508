// `stepcast diagnose` as a user meets it: text, JSON, several ranks, refused files. docs/diagnose.md.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/place.hpp"
#include "support/profile_json.hpp"

using Json = nlohmann::ordered_json;
using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line, stepcast::test::ProfileJson;

namespace {

/// Two kernels, 1 ms apart; in between the host sat in the data loader.
std::string starved(int rank) {
  return ProfileJson()
      .range("ProfilerStep#1", 0, 2000)
      .range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 110, 900)
      .call("cudaLaunchKernel", 5, 2, 1)
      .call("cudaLaunchKernel", 1020, 2, 2)
      .kernel("gemm", 10, 90, 7, 1)
      .kernel("gemm", 1100, 90, 7, 2)
      .kernel("ncclDevKernel_AllReduce_Sum_f32", 1200 + 10 * rank, 100 - 10 * rank, 20, 3)
      .text("\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":" + std::to_string(rank) + ",\"world_size\":2},");
}

}  // namespace

TEST_CASE("text and JSON of one profile") {
  const Place place;
  place.file("t.json", starved(1));
  const Outcome text = place.run("diagnose t.json");
  REQUIRE_MESSAGE(text.code == 0, text.err);
  CHECK(has(text.out, "t.json: 7 events, rank 1 of 2"));
  CHECK(has(text.out, "host_dataloader"));
  CHECK(has(text.out, "device_ops_without_launch_call 1"));
  const Outcome r = place.run("diagnose --json t.json");
  REQUIRE(r.code == 0);
  const Json rank = Json::parse(r.out)["ranks"][0];
  CHECK(rank["rank"] == 1);
  CHECK(rank["steps"][0]["duration_us"] == 2000.0);
  const Json& device = rank["devices"]["0"];
  CHECK(device["span_us"] == 1290.0);
  CHECK(device["exposed_comm_us"] == 90.0);
  CHECK(device["gaps"]["gap_total_us"] == 1000.0);
  CHECK(device["gaps"]["by_cause"]["host_dataloader"]["total_us"] == 1000.0);
  CHECK(device["gaps"]["waited_for"]["data_loader"]["total_us"] == 900.0);
  CHECK(has(text.out, "What the ends of the gaps of device 0 waited for"));
  CHECK(device["critical_path"][0]["step"] == "ProfilerStep#1");
  CHECK(device["critical_path"][0]["length_us"] == 2000.0);
  CHECK(has(text.out, "Critical path of one step on device 0: 2.000 ms"));
  CHECK(has(text.out, "1. starved_data_loader: 77.5 % of the time"));
  const Json finding = Json::parse(r.out)["findings"][0];
  CHECK(finding["finding"] == "starved_data_loader");
  CHECK(finding["upper_bound_gain"] == doctest::Approx(1000.0 / 1290));
}

TEST_CASE("several ranks: who waits") {
  const Place place;
  place.file("r0.json", starved(0));
  place.file("r1.json", starved(1));
  const Outcome r = place.run("diagnose --json .");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json across = Json::parse(r.out)["across_ranks"];
  CHECK(across["collectives"]["allreduce"]["wait_sum_us"]["0"] == 10.0);
  CHECK(across["collectives"]["allreduce"]["least_waiting_rank"] == 1);
  CHECK(across["spent_us"]["0"]["compute"] == 180.0);
  CHECK(has(place.run("diagnose r0.json r1.json").out, "rank 1 waits least"));
}

TEST_CASE("a rank that waits for another one: its gap and its path say so, and why the other is late") {
  const Place place;
  const auto rank = [](int number, double arrives) {
    return ProfileJson()
        .range("ProfilerStep#1", 0, 3000)
        .op("aten::mm", 0, 2990)
        .call("cudaLaunchKernel", 5, 2, 1)
        .call("cudaLaunchKernel", 10, 2, 2)
        .call("cudaLaunchKernel", 15, 2, 3)
        .kernel("gemm", 10, arrives - 10, 7, 1)
        .kernel("ncclDevKernel_AllReduce_Sum_f32", arrives, 2000 - arrives, 20, 2)
        .kernel("gemm", 2000, 1500, 7, 3)
        .text("\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":" + std::to_string(number) + ",\"world_size\":2},");
  };
  place.file("r0.json", rank(0, 500));
  place.file("r1.json", rank(1, 1900));
  const Outcome r = place.run("diagnose --json r0.json r1.json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json report = Json::parse(r.out);
  const Json& waiting = report["ranks"][0]["devices"]["0"];
  CHECK(waiting["gaps"]["waited_for"]["allreduce_straggler"]["total_us"] == 1400.0);
  CHECK(waiting["gaps"]["waited_for"]["allreduce_transfer"]["total_us"] == 100.0);
  CHECK(waiting["critical_path"][0]["by_kind_us"]["allreduce_straggler"] == 1400.0);
  CHECK(report["ranks"][1]["devices"]["0"]["gaps"]["waited_for"]["allreduce_transfer"]["total_us"] == 100.0);
  CHECK(has(place.run("diagnose r0.json r1.json").out, "rank 1 spends 1.4 ms more on compute than the median of the others"));
}

TEST_CASE("a trace that run wrote can be read again") {
  const Place place;
  REQUIRE(place.run("run 7b-32xa100 --set /model/layers=2 --out out").code == 0);
  const Outcome r = place.run("diagnose --json out/trace.json.gz");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json rank = Json::parse(r.out)["ranks"][0];
  for (const auto& [oddity, count] : rank["oddities"].items()) CHECK(oddity == "fractional_us_ts_X_events");
  CHECK(rank["devices"]["0"]["compute_us"] > 0);
  CHECK(rank["devices"]["0"]["comm_by_type"]["allgather"]["count"] > 0);
  CHECK_FALSE(rank["steps"].empty());
  CHECK(rank["devices"]["0"]["kernel_classes"]["gemm"]["count"] > 0);
  CHECK(rank["devices"]["0"]["collectives"][0]["bus_bytes_per_s"] > 1e9);
  const Json memory = rank["memory_timeline"]["1:0"], report = Json::parse(stepcast::test::read(place / "out/report.json"));
  CHECK(memory["peak_allocated_bytes"] == report["peak_allocated_bytes"]);
  CHECK(memory["peak_reserved_bytes"] == report["peak_reserved_bytes"]);
  CHECK(memory["steps"].size() == rank["steps"].size());
}

TEST_CASE("what is no profile is exit code 2 and one line") {
  const Place place;
  place.file("hello.json", "hello");
  place.file("empty.json", "");
  place.file("list.json", R"({"traceEvents": 7})");
  place.file("cut.zip", "PK\x03\x04 and nothing more");
  for (const char* name : {"hello.json", "empty.json", "list.json", "cut.zip", "absent.json"}) {
    const Outcome r = place.run(std::string("diagnose ") + name);
    CHECK_MESSAGE(r.code == 2, name);
    CHECK_MESSAGE(one_line(r.err), r.err);
    CHECK(has(r.err, name));
    CHECK(r.out.empty());
  }
}
