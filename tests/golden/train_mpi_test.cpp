// `mpirun stepcast train` as a user meets it. docs/real_backend.md, "Several processes". Without MPI, or without a launcher that can start processes here, only the refusal is tested.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "support/paths.hpp"
#include "support/place.hpp"

using Json = nlohmann::ordered_json;
using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line, stepcast::test::read;

namespace {

const std::string kStepcast = "'" + stepcast::test::binary() + "' ";
const std::string kMpirun = STEPCAST_MPIRUN[0] == '\0' ? "" : "timeout 120 '" STEPCAST_MPIRUN "' --allow-run-as-root --oversubscribe --quiet ";

const char* kTinyOnFour = R"({
  "schema": "stepcast.scenario/1", "name": "tiny",
  "model": {"style": "llama", "hidden": 32, "layers": 3, "heads": 4, "kv_heads": 2, "head_dim": 8, "ffn": 80, "vocab": 64},
  "cluster": {"node": "dgx-a100", "gpus_per_node": 4, "nodes": 1},
  "batch": {"micro_batch": 2, "seq_len": 12},
  "precision": {"param": "fp64", "reduce": "fp64", "master": "fp64"},
  "run": {"steps": 4}
})";

bool can_launch(const Place& place) {
  place.file("tiny.json", kTinyOnFour);
  const bool can = !kMpirun.empty() && place.shell(kMpirun + "-n 2 true").code == 0;
  if (!can) MESSAGE("skipped: no mpirun that starts two processes here");
  return can;
}

/// Steps and parameters of a run, without its times.
Json numbers_of(const std::string& text) {
  Json run = Json::parse(text);
  for (Json& step : run["training"]) step.erase("step_time_s");
  return {run["outcome"], run["ranks"], run["training"], run["final_parameters"], run["peak_allocated_bytes"]};
}

std::size_t lines(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

}  // namespace

TEST_CASE("ranks as processes give what ranks as threads give, to the bit: FSDP1, FSDP2, DDP, hybrid sharding, bf16") {
  const Place place;
  if (!can_launch(place)) return;
  for (const std::string& way :
       {std::string("--ranks 2"), std::string("--ranks 4 --set /policy/framework=fsdp2"), std::string("--ranks 4 --set /policy/framework=ddp"),
        std::string("--set /cluster/gpus_per_node=2 --set /cluster/nodes=2 --set /policy/sharding=HYBRID_SHARD"),
        std::string("--ranks 2 --set /precision/param=bf16 --set /precision/reduce=bf16 --set /precision/master=fp32")}) {
    CAPTURE(way);
    const std::string train = "train tiny.json --closed-form --json " + way, ranks = way.starts_with("--ranks 2") ? "2 " : "4 ";
    const Outcome threads = place.run(train), processes = place.shell(kMpirun + "-n " + ranks + kStepcast + train);
    REQUIRE_MESSAGE(threads.code == 0, threads.err);
    REQUIRE_MESSAGE(processes.code == 0, processes.err);
    CHECK(processes.err.empty());
    CHECK(numbers_of(processes.out) == numbers_of(threads.out));
  }
}

TEST_CASE("the first process writes the files; the trace has as many ranks as are asked for, on one clock") {
  const Place place;
  if (!can_launch(place)) return;
  const Outcome run = place.shell(kMpirun + "-n 2 " + kStepcast + "train tiny.json --ranks 2 --trace-ranks 2 --out out");
  REQUIRE_MESSAGE(run.code == 0, run.err);
  REQUIRE(place.shell("gunzip out/trace.json.gz").code == 0);
  std::map<int, std::pair<double, double>> collectives;  // of each rank: begin of the first, end of the last
  std::map<int, int> count;
  const Json trace = Json::parse(read(place / "out/trace.json"));
  for (const Json& event : trace["traceEvents"]) {
    if (event.value("cat", "") != "kernel" || !has(event["name"].get<std::string>(), "nccl")) continue;
    const double begin = event["ts"].get<double>(), end = begin + event["dur"].get<double>();
    auto [at, is_new] = collectives.try_emplace(event["pid"].get<int>(), begin, end);
    at->second = {std::min(at->second.first, begin), std::max(at->second.second, end)};
    ++count[event["pid"].get<int>()];
  }
  REQUIRE(collectives.size() == 2);
  CHECK(count[0] == count[1]);
  const double span = collectives[0].second - collectives[0].first;
  CHECK(collectives[1].first < collectives[0].second);  // they overlap: one clock
  CHECK(collectives[0].first < collectives[1].second);
  CHECK(std::abs(collectives[1].second - collectives[0].second) < span);
}

TEST_CASE("what is wrong is said once, with the exit code of one process") {
  const Place place;
  if (!can_launch(place)) return;
  const Outcome wrong = place.shell(kMpirun + "-n 3 " + kStepcast + "train tiny.json --set /batch/micro_batches=1");
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "micro_batches"));
  CHECK(wrong.err.find("stepcast: ") == wrong.err.rfind("stepcast: "));
  const Outcome few = place.shell(kMpirun + "-n 3 " + kStepcast + "train tiny.json");
  CHECK(few.code == 2);
  CHECK(has(few.err, "has 4 ranks, and 3 processes were started"));
  const Outcome memory = place.shell(kMpirun + "-n 2 " + kStepcast + "train tiny.json --ranks 2 --set '/allocator/device_memory=2 MiB' --json");
  CHECK(memory.code == 4);
  CHECK(has(memory.err, "out of memory: no room for"));
  CHECK(Json::parse(memory.out)["outcome"] == "out_of_memory");
}

TEST_CASE("a rank that fails alone ends the job with its line, and what all had done is kept") {
  const Place place;
  if (!can_launch(place)) return;
  place.file("other.json", std::string(kTinyOnFour).replace(std::string(kTinyOnFour).find("\"steps\": 4"), 10, "\"steps\": 5"));
  const std::string on_second =
      "sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then exec \"$0\" train $OTHER; else exec \"$0\" train tiny.json --ranks 2; fi' " + kStepcast;
  const Outcome other = place.shell("OTHER='other.json --ranks 2' " + kMpirun + "-n 2 " + on_second);
  CHECK(other.code == 3);
  CHECK(has(other.err, "stepcast: rank 1 has another scenario, or another build of stepcast, than rank 0\n"));
  const Outcome absent = place.shell("OTHER='absent.json --ranks 2' " + kMpirun + "-n 2 " + on_second);
  CHECK(absent.code == 3);
  CHECK(has(absent.err, "stepcast: rank 1: absent.json"));
}

TEST_CASE("a process that dies ends the job in time; the steps that all ranks had done are kept") {
  const Place place;
  if (!can_launch(place)) return;
  const std::string die = "sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then (sleep 3; kill -9 $$) & fi; exec \"$@\"' sh ";
  const Outcome dead = place.shell(kMpirun + "-n 2 " + die + kStepcast + "train tiny.json --closed-form --ranks 2 --set /run/steps=10000 --json --out out");
  CHECK(dead.code != 0);
  CHECK(dead.code != 124);  // of timeout
  CHECK_MESSAGE(has(dead.err, "stepcast: ended by SIGTERM: a process of the job is gone, or its time is up\n"), dead.err);
  const std::string kept = read((place / "out") / "report.json");
  REQUIRE_FALSE(kept.empty());
  const Json report = Json::parse(kept), whole = Json::parse(place.run("train tiny.json --closed-form --ranks 2 --json").out);
  CHECK(report["outcome"] == "failed");
  REQUIRE(report["training"].size() >= 4);
  for (std::size_t k = 0; k < 4; ++k) CHECK(report["training"][k]["loss"] == whole["training"][k]["loss"]);
}

TEST_CASE("a process that stands still ends the job within the deadline, by name of the rank") {
  const Place place;
  if (!can_launch(place)) return;
  const std::string stop = "sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then (sleep 3; kill -STOP $$) & fi; exec \"$@\"' sh ";
  const Outcome still = place.shell(kMpirun + "-n 2 " + stop + kStepcast + "train tiny.json --ranks 2 --set /run/steps=10000 --deadline 1 --json");
  CHECK(still.code != 0);
  CHECK(still.code != 124);
  CHECK(has(still.err, "stepcast: no kernel of any rank has ended for 1 s\n"));
  CHECK(has(still.err, "stepcast: a kernel does not return; left behind: rank 1\n"));
  CHECK(lines(still.out) > 4);
}

TEST_CASE("a MASTER_ADDR that nobody knows is bad input, said by the process that looked it up") {
  const Place place;
  place.file("tiny.json", kTiny);
  const std::string host(100, 'x');  // a part of a name has 63 characters at most
  const Outcome other =
      place.shell("RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_PORT=29500 MASTER_ADDR=" + host + " " + kStepcast + "train tiny.json --device cuda");
  CHECK(other.code == 2);
  CHECK(one_line(other.err));
  CHECK(has(other.err, "environment: rank 1: MASTER_ADDR is \"" + host + "\""));
}

TEST_CASE("without MPI a launcher's processes are refused with one line") {
  const Place place;
  if (!kMpirun.empty()) return;
  place.file("tiny.json", kTinyOnFour);
  const Outcome first = place.shell("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 " + kStepcast + "train tiny.json --ranks 2");
  CHECK(first.code == 2);
  CHECK(one_line(first.err));
  CHECK(has(first.err, "has no MPI"));
}
