// Files are read back with a strict parser and compared with the trace; the checker itself is shown planted faults.
#include "trace/chrome_writer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/chrome_check.hpp"
#include "tests/support/trace_builder.hpp"
#include "trace/kineto_names.hpp"

using namespace stepcast;
using namespace stepcast::trace;
using hw::CollectiveKind;
using nlohmann::json;
using stepcast::test::check_chrome;
using stepcast::test::TraceBuilder;
using stepcast::test::us;

namespace {

TraceBuilder small_step() {
  TraceBuilder b;
  auto& trace = b.trace();
  trace.device_name = "NVIDIA A100-SXM4-80GB";
  trace.device_memory_bytes = 85'899'345'920;
  trace.kernels.push_back({{}, "Memcpy DtoD (Device -> Device)"});
  trace.names.push_back("ProfilerStep#0");
  b.phase(Phase::forward);
  b.wait(HostState::data_loader, 0, 8);
  b.op(8, 12).launch(9, 12).collective(CollectiveKind::all_gather, 17, 40);
  b.op(12, 22).launch(16, 22).kernel(40, 70.5);
  b.launch(22, 24).kernel(70.5, 71, 0, 2);
  b.phase(Phase::backward);
  b.wait(HostState::rate_limiter, 24, 71).op(71, 80).launch(75, 80).kernel(85, 100.0001).launch(80, 82).collective(CollectiveKind::reduce_scatter, 101, 140, 3);
  b.memory(9, 512, 512, 2 << 20).memory(90, -512, 0, 2 << 20).memory(91, 0, 0, 0);
  b.step_ends(90, 140);
  auto& slices = trace.ranks[0].slices;
  for (auto& slice : slices) {
    if (slice.lane >= 0) slice.unit = 3;
  }
  Slice mark;
  mark.end = us(90);
  mark.category = Category::annotation;
  mark.name = 3;
  slices.push_back(mark);
  return b;
}

json written(const Trace& trace) {
  std::ostringstream out;
  write_chrome(trace, out);
  return json::parse(out.str());
}

std::vector<json> find(const json& file, const std::string& category) {
  std::vector<json> out;
  for (const auto& event : file["traceEvents"]) {
    if (event.value("cat", "") == category) out.push_back(event);
  }
  return out;
}

json& event_named(json& file, const std::string& category, std::size_t index = 0) {
  for (auto& event : file["traceEvents"]) {
    if (event.value("cat", "") == category && event["ph"] == "X" && index-- == 0) return event;
  }
  throw std::logic_error("no such event");
}

bool complains(const json& file, const std::string& what) {
  const auto violations = check_chrome(file);
  return std::any_of(violations.begin(), violations.end(), [&](const std::string& line) { return line.rfind(what, 0) == 0; });
}

}  // namespace

TEST_CASE("the head says what was profiled") {
  const auto file = written(small_step().trace());
  CHECK(file["schemaVersion"] == 1);
  CHECK(file["deviceProperties"][0]["name"] == "NVIDIA A100-SXM4-80GB");
  CHECK(file["deviceProperties"][0]["totalGlobalMem"] == 85'899'345'920);
  CHECK(file["distributedInfo"] == json{{"backend", "nccl"}, {"rank", 0}, {"world_size", 32}});
  CHECK(file["baseTimeNanoseconds"] == 0);
  CHECK(file["traceName"].is_string());
}

TEST_CASE("a written file satisfies the checker") { CHECK(check_chrome(written(small_step().trace())) == std::vector<std::string>{}); }

TEST_CASE("kernels have their times to the nanosecond, their stream, and a link to the op that launched them") {
  const auto file = written(small_step().trace());
  const auto kernels = find(file, "kernel");
  REQUIRE(kernels.size() == 4);
  const json& gemm = kernels[0];
  CHECK(gemm["name"] == "gemm");
  CHECK(gemm["pid"] == 0);
  CHECK(gemm["tid"] == 7);
  CHECK(gemm["ts"] == 40.0);
  CHECK(gemm["dur"] == 30.5);
  CHECK(gemm["args"]["stream"] == 7);
  CHECK(gemm["args"]["device"] == 0);
  CHECK(gemm["args"]["correlation"] == 2);
  CHECK(gemm["args"]["phase"] == "forward");
  CHECK(gemm["args"]["unit"] == 3);
  const auto ops = find(file, "cpu_op");
  REQUIRE(ops.size() == 3);
  CHECK(gemm["args"]["External id"] == ops[1]["args"]["External id"]);
  CHECK(kernels[1]["dur"] == 15.0);  // 15.0001 us: a tenth of a nanosecond is rounded away
  CHECK(find(file, "gpu_memcpy").size() == 1);
}

TEST_CASE("collectives carry NCCL's name and sizes") {
  const auto file = written(small_step().trace());
  const auto kernels = find(file, "kernel");
  const json& gather = kernels[2];
  CHECK(gather["name"] == "ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)");
  CHECK(gather["tid"] == 9);
  CHECK(gather["args"]["Collective name"] == "_allgather_base");
  CHECK(gather["args"]["dtype"] == "BFloat16");
  CHECK(gather["args"]["Out msg nelems"] == (1 << 20) / 2);      // 1 MiB of bf16
  CHECK(gather["args"]["In msg nelems"] == (1 << 20) / 2 / 32);  // one of 32 shards
  CHECK(gather["args"]["Group size"] == 32);
  CHECK(gather["args"]["Process Group Ranks"].get<std::string>().starts_with("[0, 1, 2, "));
  CHECK(kernels[3]["name"] == "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)");
  CHECK(kernels[3]["args"]["In msg nelems"] == (1 << 20) / 2);
  CHECK(kernels[3]["args"]["Out msg nelems"] == (1 << 20) / 2 / 32);
}

TEST_CASE("steps, phases and units are ranges on the host and on the streams") {
  const auto file = written(small_step().trace());
  std::vector<std::string> host, device;
  for (const auto& event : find(file, "user_annotation")) host.push_back(event["name"]);
  for (const auto& event : find(file, "gpu_user_annotation")) {
    if (event["tid"] == 7) device.push_back(event["name"]);
  }
  CHECK(host ==
        std::vector<std::string>{"ProfilerStep#0", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "FullyShardedDataParallel.rate_limiter"});
  CHECK(device == std::vector<std::string>{"ProfilerStep#0", "forward", "forward unit 3", "backward", "backward unit 3"});
}

TEST_CASE("memory: an instant for each allocation and free, a counter for each change") {
  const auto file = written(small_step().trace());
  std::vector<json> instants = find(file, "cpu_instant_event"), counters;
  for (const auto& event : file["traceEvents"]) {
    if (event["ph"] == "C") counters.push_back(event);
  }
  REQUIRE(instants.size() == 2);
  CHECK(instants[0]["name"] == "[memory]");
  CHECK(instants[0]["args"] ==
        json{{"Total Reserved", 2 << 20}, {"Total Allocated", 512}, {"Bytes", 512}, {"Addr", 0x7000}, {"Device Id", 0}, {"Device Type", 1}});
  CHECK(instants[1]["args"]["Bytes"] == -512);
  REQUIRE(counters.size() == 3);
  CHECK(counters[2]["args"] == json{{"Allocated", 0}, {"Reserved", 0}});
}

TEST_CASE("processes and streams have names") {
  const auto file = written(small_step().trace());
  std::vector<std::string> threads;
  for (const auto& event : file["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") threads.push_back(event["args"]["name"]);
  }
  CHECK(threads == std::vector<std::string>{"thread 1000 (main)", "stream 7 compute", "stream 9 unshard", "stream 10 post_backward"});
}

TEST_CASE("several ranks are several GPUs and several host processes") {
  auto b = small_step();
  auto& trace = b.trace();
  trace.ranks.push_back(trace.ranks[0]);
  trace.ranks[1].rank = 1;
  for (auto& slice : trace.ranks[1].slices) slice.correlation += slice.correlation == 0 ? 0 : 100;
  const auto file = written(trace);
  CHECK(file["deviceProperties"].size() == 2);
  CHECK(check_chrome(file) == std::vector<std::string>{});
  CHECK(find(file, "kernel").back()["pid"] == 1);
}

TEST_CASE("an empty trace is a valid file") {
  const auto file = written(Trace{});
  CHECK(file["traceEvents"].empty());
}

TEST_CASE("groups of ranks in a row, and of every n-th rank") {
  using Ranks = std::vector<std::int32_t>;
  CHECK(group_ranks(8, false, 11, 32) == Ranks{8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(group_ranks(16, false, 11, 32).front() == 0);  // two of four nodes
  CHECK(group_ranks(16, false, 11, 32).back() == 15);
  CHECK(group_ranks(4, true, 11, 32) == Ranks{3, 11, 19, 27});
  CHECK(group_ranks(2, true, 3, 4) == Ranks{1, 3});  // replicas within one node
  CHECK(group_ranks(32, true, 11, 32).size() == 32);
  CHECK(group_ranks(64, false, 11, 32).empty());
  CHECK(group_ranks(5, false, 11, 32).empty());
}

TEST_CASE("the checker finds planted faults") {
  const auto good = written(small_step().trace());
  auto file = good;
  event_named(file, "kernel")["dur"] = -1.0;
  CHECK(complains(file, "negative length"));

  file = good;
  event_named(file, "kernel", 1)["ts"] = 3.0;
  CHECK(complains(file, "begins before"));
  CHECK(complains(file, "the arrow does not end at the work"));

  file = good;
  event_named(file, "cpu_op")["dur"] = 6.0;
  CHECK(complains(file, "reaches out"));

  file = good;
  event_named(file, "kernel")["args"].erase("correlation");
  CHECK(complains(file, "device work without a correlation"));

  file = good;
  event_named(file, "kernel")["args"]["correlation"] = 77;
  CHECK(complains(file, "not exactly one launch"));
  CHECK(complains(file, "not exactly one arrow"));

  file = good;
  auto& events = file["traceEvents"];
  events.erase(std::find_if(events.begin(), events.end(), [](const json& event) { return event["ph"] == "f"; }));
  CHECK(complains(file, "arrows with one end"));
}
