// Whatever is odd about a file is counted under a name with a severity; each name is made to occur. docs/diagnose.md, "Oddities".
#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "support/paths.hpp"
#include "support/profile_json.hpp"
#include "trace/profile/oddities.hpp"
#include "trace/profile/processes.hpp"

using stepcast::test::ProfileJson;
using namespace stepcast::trace::profile;

namespace {

struct Case {
  const char* name;
  std::int64_t count;
  Profile profile;
};

const char* const kMark = R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)";

ProfileJson step(const char* number_and_times) { return ProfileJson().raw(kMark + std::string(number_and_times) + "}"); }

/// An event of the device without what is given elsewhere.
Profile device_event(const std::string& members, const std::string& headers = "") {
  return ProfileJson().raw(R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,)" + members + "}").read(headers);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::string whole = ProfileJson().kernel("k", 1, 1, 7, 1).text();
  all.push_back({"truncated_file", 1, ProfileJson::read_text(whole.substr(0, whole.size() - 5))});
  all.push_back({"broken_headers", 1, ProfileJson::read_text("{ 5 " + whole.substr(1))});
  all.push_back({"broken_events", 1, ProfileJson().raw(R"({"ph" "X"})").read()});
  all.push_back({"array_elements_that_are_no_events", 2, ProfileJson().raw("3,\"x\"").read()});
  all.push_back({"X_events_without_ts_or_dur", 3,
                 ProfileJson()
                     .raw(R"({"ph":"X","cat":"kernel","name":"k","ts":1})")
                     .raw(R"({"ph":"X","cat":"cpu_op","name":"k","ts":NaN,"dur":1})")
                     .raw(R"({"ph":"X","cat":"cpu_op","name":"k","ts":1,"dur":-Infinity})")
                     .read()});
  all.push_back({"base_time_out_of_range", 1, ProfileJson().read("\"baseTimeNanoseconds\":-5,")});
  all.push_back({"events_without_phase", 1, ProfileJson().raw(R"({"name":"k"})").read()});
  all.push_back({"events_of_unknown_phase", 1, ProfileJson().raw(R"({"ph":"?","name":"k"})").read()});
  all.push_back(
      {"events_of_unknown_category", 2, ProfileJson().raw(R"({"ph":"X","cat":"mystery","ts":1,"dur":1})").raw(R"({"ph":"X","cat":"","ts":1,"dur":1})").read()});
  all.push_back({"begin_end_events_not_read", 2, ProfileJson().raw(R"({"ph":"B","name":"b","ts":1})").raw(R"({"ph":"E","ts":2})").read()});
  all.push_back({"memory_events_without_time_bytes_or_device", 1, ProfileJson().raw(R"({"ph":"i","name":"[memory]","ts":3,"args":{"Bytes":512}})").read()});
  all.push_back({"X_events_without_category", 1, ProfileJson().raw(R"({"ph":"X","name":"k","ts":1,"dur":1})").read()});
  all.push_back({"X_events_without_name", 1, ProfileJson().raw(R"({"ph":"X","cat":"cpu_op","ts":1,"dur":1})").read()});
  all.push_back({"negative_durations", 1, ProfileJson().kernel("k", 5, -2, 7, 1).read()});
  all.push_back({"same_stream_overlaps", 1, ProfileJson().kernel("a", 0, 10, 7, 1).kernel("b", 9, 10, 7, 2).kernel("c", 9, 10, 8, 3).read()});
  all.push_back(
      {"overlapping_steps", 1, step(R"(1","pid":1,"tid":1,"ts":0,"dur":10)").raw(kMark + std::string(R"(2","pid":1,"tid":1,"ts":9,"dur":10})")).read()});
  // The same step marked by two threads.
  all.push_back(
      {"overlapping_steps", 1, step(R"(1","pid":1,"tid":1,"ts":0,"dur":10)").raw(kMark + std::string(R"(1","pid":1,"tid":2,"ts":1,"dur":8})")).read()});
  all.push_back({"device_ops_without_launch_call", 1, ProfileJson().kernel("k", 5, 2, 7, 1).read()});
  all.push_back({"device_ops_starting_before_their_launch_call", 1, ProfileJson().call("cudaLaunchKernel", 6, 2, 1).kernel("k", 5, 2, 7, 1).read()});
  all.push_back({"device_ops_without_stream", 1, device_event(R"("pid":0,"tid":"none")")});
  all.push_back({"device_ids_not_in_deviceProperties", 1, device_event(R"("pid":3,"tid":7)", R"("deviceProperties":[{"id":0}],)")});
  all.push_back({"runtime_calls_sharing_a_correlation_id", 1, ProfileJson().call("cudaLaunchKernel", 1, 1, 1).call("cudaLaunchKernel", 3, 1, 1).read()});
  all.push_back({"runtime_calls_named_INVALID", 1, ProfileJson().call("INVALID", 1, 1, 1).read()});
  all.push_back({"no_device_events", 1, ProfileJson().op("aten::mm", 1, 1).read()});
  all.push_back({"pid_shared_by_host_and_device_events", 1,
                 ProfileJson().raw(R"({"ph":"X","cat":"cpu_op","name":"a","pid":0,"tid":1,"ts":1,"dur":1})").kernel("k", 1, 1, 7, 1).read()});
  all.push_back({"zero_dur_device_events", 1, ProfileJson().kernel("k", 5, 0, 7, 1).read()});
  all.push_back({"ts_given_as_string", 1, ProfileJson().raw(R"({"ph":"X","cat":"cpu_op","name":"a","ts":"1","dur":1})").read()});
  all.push_back({"tid_given_as_string", 1, ProfileJson().raw(R"({"ph":"X","cat":"cpu_op","name":"a","tid":"main","ts":1,"dur":1})").read()});
  all.push_back({"times_in_nanoseconds", 1, ProfileJson().raw(R"({"ph":"X","cat":"cpu_op","name":"a","ts":1700000000000000000,"dur":1})").read()});
  all.push_back({"fractional_us_ts_X_events", 1, ProfileJson().raw(R"({"ph":"X","cat":"cpu_op","name":"a","ts":1.5,"dur":1})").read()});
  return all;
}

}  // namespace

TEST_CASE("each oddity is counted under its name") {
  std::set<std::string_view> seen = {"compressed_data_cut_short", "processes_of_one_file"};  // profile_files_test.cpp, profile_processes_test.cpp
  for (const Case& one : cases()) {
    const auto at = one.profile.oddities.find(one.name);
    CHECK_MESSAGE((at != one.profile.oddities.end() && at->second == one.count), one.name);
    seen.insert(one.name);
    for (const auto& [name, count] : one.profile.oddities) {
      const bool known = std::any_of(oddities().begin(), oddities().end(), [&name = name](const Oddity& oddity) { return oddity.name == name; });
      CHECK_MESSAGE(known, name);
    }
  }
  for (const Oddity& oddity : oddities()) CHECK_MESSAGE(seen.count(oddity.name) == 1, oddity.name);
}

TEST_CASE("the document has every oddity with its severity") {
  std::ifstream file(std::string(stepcast::test::source_dir()) + "/docs/diagnose.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const Oddity& oddity : oddities()) {
    const std::string row = "| " + std::string(oddity.name) + " | " + std::string(name(oddity.severity)) + " |";
    CHECK_MESSAGE(text.str().find(row) != std::string::npos, row);
  }
}
