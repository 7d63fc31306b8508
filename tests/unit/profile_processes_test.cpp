// Several processes in one file: each is a profile of its own. docs/diagnose.md, "Several processes in one file".
#include <doctest/doctest.h>

#include "support/profile_json.hpp"
#include "trace/profile/processes.hpp"

using stepcast::test::ProfileJson;
using namespace stepcast::trace::profile;

namespace {

std::string event(const char* category, const char* name, int pid, int tid, int ts, int dur, const std::string& arguments) {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", category, name, pid, tid, ts, dur, arguments);
}

/// A process with its device: a launch at 10, a kernel at 20, and a step. `correlation` may be the same in all.
void rank(ProfileJson& json, int pid, int device, int shift, int correlation) {
  json.raw(event("user_annotation", "ProfilerStep#1", pid, pid, shift, 100, ""))
      .raw(event("cuda_runtime", "cudaLaunchKernel", pid, pid, shift + 10, 5, fmt::format(R"("correlation":{})", correlation)))
      .raw(event("kernel", "gemm", device, 7, shift + 20, 30, fmt::format(R"("device":{},"stream":7,"correlation":{})", device, correlation)))
      .raw(fmt::format(R"({{"ph":"i","name":"[memory]","pid":{},"ts":{},"args":{{"Bytes":512,"Device Type":1,"Device Id":{}}}}})", pid, shift + 5, device));
}

}  // namespace

TEST_CASE("a profile for each process that launches to a device") {
  for (const bool same_numbers : {false, true}) {
    ProfileJson json;
    for (int i = 0; i < 3; ++i) rank(json, 500 + i, i, 1000 * i, same_numbers ? 1 : i + 1);
    json.raw(event("cpu_op", "worker", 900, 1, 3, 1, ""));
    const auto parts = by_process(json.read(R"("distributedInfo":{"rank":8},)"));
    REQUIRE(parts.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      const Profile& part = parts[i];
      CHECK(part.header.rank == 8 + static_cast<std::int64_t>(i));
      CHECK(part.label == fmt::format("test ({} of 3 processes)", i + 1));
      REQUIRE(part.device_ops.size() == 1);
      REQUIRE(part.host_calls.size() == 1);
      REQUIRE(part.launch_of(part.device_ops[0]));
      CHECK(part.launch_of(part.device_ops[0])->begin == part.device_ops[0].begin - Time(10000));
      CHECK(part.threads[part.host_calls[0].thread].starts_with(std::to_string(500 + i)));
      CHECK(part.host_ops.size() == (i == 0 ? 2 : 1));  // what launches nothing is the first's
      CHECK(part.memory.size() == 1);
    }
    CHECK(parts[0].oddities.at("processes_of_one_file") == 3);
    CHECK(parts[0].events == 13);
    CHECK(parts[1].oddities.empty());
  }
}

TEST_CASE("one process is one profile, whatever it launches to") {
  const auto count = [](const ProfileJson& json) { return by_process(json.read()).size(); };
  ProfileJson several_devices;
  for (int i = 0; i < 3; ++i) rank(several_devices, 500, i, 1000 * i, i + 1);
  CHECK(count(several_devices) == 1);
  CHECK(count(ProfileJson()) == 1);
  // Two processes, one of which has no device: a loader's worker.
  ProfileJson worker;
  rank(worker, 500, 0, 0, 1);
  worker.raw(event("cuda_runtime", "cudaMemcpyAsync", 501, 1, 3, 1, R"("correlation":77)"));
  CHECK(count(worker) == 1);
  // No launch is recorded.
  CHECK(
      count(
          ProfileJson().raw(event("kernel", "k", 0, 7, 1, 1, R"("device":0,"stream":7)")).raw(event("kernel", "k", 1, 7, 1, 1, R"("device":1,"stream":7)"))) ==
      1);
}
