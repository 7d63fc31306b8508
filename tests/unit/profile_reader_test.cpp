// Files as they come: whole, cut, broken, in old and new forms. Nothing is lost without being counted. docs/diagnose.md, "What is read" and "Oddities".
#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "support/profile_json.hpp"

using stepcast::InputError, stepcast::test::ProfileJson;
using namespace stepcast::trace::profile;

namespace {

std::int64_t oddity(const Profile& profile, const char* name) {
  const auto at = profile.oddities.find(name);
  return at == profile.oddities.end() ? 0 : at->second;
}

ProfileJson small() {
  return ProfileJson().call("cudaLaunchKernel", 10, 5, 1).kernel("gemm", 20.125, 4.5, 7, 1).kernel("ncclDevKernel_AllGather_RING_LL", 22, 3, 20, 2);
}

}  // namespace

TEST_CASE("a small profile") {
  const Profile p = small()
                        .op("aten::mm", 8, 8)
                        .range("ProfilerStep#3", 0, 50)
                        .read(R"("schemaVersion":1,"distributedInfo":{"rank":3,"world_size":8},)"
                              R"("deviceProperties":[{"id":0,"name":"GPU"}],"baseTimeNanoseconds":77,)");
  REQUIRE(p.device_ops.size() == 2);
  CHECK(p.device_ops[0].begin == Time(20125));
  CHECK(p.device_ops[0].end == Time(24625));
  CHECK(p.device_ops[1].kind == DeviceKind::communication);
  REQUIRE(p.launch_of(p.device_ops[0]));
  CHECK(p.names[p.launch_of(p.device_ops[0])->name] == "cudaLaunchKernel");
  CHECK_FALSE(p.launch_of(p.device_ops[1]));
  CHECK(p.host_ops.size() == 2);
  CHECK(p.header.rank == 3);
  CHECK(p.header.base_time_ns == 77);
  CHECK(p.header.gpus.at(0) == "GPU");
  CHECK(oddity(p, "device_ops_without_launch_call") == 1);
  CHECK(p.events == 5);
}

TEST_CASE("a file that is cut at any byte gives what came before, and says so") {
  const std::string whole = small().text();
  const std::size_t begin = whole.find('[') + 1;
  for (std::size_t size = begin; size < whole.size() - 2; ++size) {
    const Profile p = ProfileJson::read_text(whole.substr(0, size));
    CHECK(oddity(p, "truncated_file") == 1);
    CHECK(p.events <= 3);
  }
  CHECK(oddity(ProfileJson::read_text(whole), "truncated_file") == 0);
}

TEST_CASE("one broken event costs that event") {
  const auto good = [](int i) {
    return R"({"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":)" + std::to_string(i) + R"(,"dur":1,"args":{"x":{"y":1}}})";
  };
  const Profile p =
      ProfileJson::read_text("{\"traceEvents\":[" + good(1) + R"(,{"ph" "X","cat":"cpu_op","args":{"b":1}},)" + good(2) + ",,7,null," + good(3) + ",]}");
  CHECK(p.host_ops.size() == 3);
  CHECK(oddity(p, "broken_events") == 1);
  CHECK(oddity(p, "array_elements_that_are_no_events") == 2);
}

TEST_CASE("broken headers: the events are found by their key") {
  const Profile p = ProfileJson::read_text("{ { \"id\": 6 } ], " + small().text().substr(1));
  CHECK(p.device_ops.size() == 2);
  CHECK(oddity(p, "broken_headers") >= 1);
}

TEST_CASE("a bare array, a byte order mark, headers behind the events") {
  const std::string whole = small().text();
  const std::string array = whole.substr(whole.find('['), whole.size() - whole.find('[') - 1);
  CHECK(ProfileJson::read_text(array).device_ops.size() == 2);
  CHECK(ProfileJson::read_text("\xef\xbb\xbf " + whole).device_ops.size() == 2);
  CHECK(ProfileJson::read_text(whole.substr(0, whole.size() - 1) + R"(,"distributedInfo":{"rank":5}})").header.rank == 5);
}

TEST_CASE("odd times: strings, nanoseconds, negative, missing, not a number") {
  const auto event = [](const char* times) { return std::string(R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,)") + times + "}"; };
  const auto one = [&](const char* times) { return ProfileJson().raw(event(times)).read(); };
  const Profile text = one(R"("ts":"5.5","dur":"2")");
  CHECK(text.device_ops.at(0).begin == Time(5500));
  CHECK(oddity(text, "ts_given_as_string") == 1);
  const Profile nanoseconds = one(R"("ts":1700000000000000123,"dur":2000)");
  CHECK(nanoseconds.device_ops.at(0).begin == Time(1700000000000000123));
  CHECK(nanoseconds.device_ops.at(0).end == Time(1700000000000002123));
  CHECK(oddity(nanoseconds, "times_in_nanoseconds") == 1);
  const Profile negative = one(R"("ts":5,"dur":-2)");
  CHECK(negative.device_ops.at(0).end == Time(5000));
  CHECK(oddity(negative, "negative_durations") == 1);
  for (const char* missing : {R"("ts":5)", R"("dur":5)", R"("ts":NaN,"dur":1)", R"("ts":1,"dur":Infinity)", R"("ts":null,"dur":1)",
                              R"("ts":1,"dur":99999999999999999999)", R"("ts":9e15,"dur":1)", R"("ts":1,"dur":2e12)"}) {
    const Profile p = one(missing);
    CHECK_MESSAGE(p.device_ops.empty(), missing);
    CHECK(oddity(p, "X_events_without_ts_or_dur") == 1);
    CHECK(oddity(p, "no_device_events") == 1);
  }
}

TEST_CASE("old profiles: stream by row, device by process, capitals, ranges among operators") {
  const Profile p = ProfileJson()
                        .raw(R"({"ph":"X","cat":"Kernel","name":"k","pid":1,"tid":"stream 7","ts":1,"dur":1,"args":{}})")
                        .raw(R"({"ph":"X","cat":"Operator","name":"Optimizer.step#SGD.step","pid":5,"tid":5,"ts":1,"dur":1})")
                        .raw(R"({"ph":"X","cat":"Operator","name":"aten::mm","pid":5,"tid":5,"ts":1,"dur":1})")
                        .read();
  CHECK(p.devices.at(0) == "1");
  CHECK(p.streams.at(0).number == 7);
  CHECK(p.host_ops.at(0).annotation);
  CHECK_FALSE(p.host_ops.at(1).annotation);
}

TEST_CASE("what is unknown is counted") {
  const Profile p =
      small()
          .raw(R"({"ph":"X","cat":"mystery","name":"m","ts":1,"dur":1})")
          .raw(R"({"ph":"B","name":"b","ts":1})")
          .raw(R"({"name":"no phase"})")
          .call("cudaLaunchKernel", 40, 1, 1)
          .raw(R"({"ph":"i","name":"[memory]","ts":3,"args":{"Bytes":512,"Device Type":1,"Device Id":0,"Total Allocated":512,"Total Reserved":1024}})")
          .raw(R"({"ph":"i","name":"[memory]","ts":3,"args":{"Bytes":512}})")
          .read();
  CHECK(oddity(p, "events_of_unknown_category") == 1);
  CHECK(oddity(p, "begin_end_events_not_read") == 1);
  CHECK(oddity(p, "events_without_phase") == 1);
  CHECK(oddity(p, "runtime_calls_sharing_a_correlation_id") == 1);
  CHECK(oddity(p, "memory_events_without_time_bytes_or_device") == 1);
  REQUIRE(p.memory.size() == 1);
  CHECK(p.memory[0].total_reserved == 1024);
}

TEST_CASE("an event larger than the window that it is read through") {
  const std::string huge(3'000'000, 'x');
  const Profile p =
      ProfileJson().raw(R"({"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1,"args":{"Call stack":")" + huge + R"("}})").kernel("k", 5, 1, 7, 1).read();
  CHECK(p.host_ops.size() == 1);
  CHECK(p.device_ops.size() == 1);
}

TEST_CASE("what holds no events is refused in one line") {
  for (const char* wrong : {"", "hello", "42", "{}", R"({"traceEvents":5})", "{\"a\":", "{{{{"}) CHECK_THROWS_AS(ProfileJson::read_text(wrong), InputError);
}
