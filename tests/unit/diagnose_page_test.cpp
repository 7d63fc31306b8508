// The page of a diagnosis: lanes, gaps and shares are the profile's own, and names are only names. docs/page.md.
#include <doctest/doctest.h>

#include <algorithm>

#include "cli/page/diagnose_page.hpp"
#include "support/profile_json.hpp"

using namespace stepcast;
using Json = nlohmann::ordered_json;
using test::ProfileJson;

namespace {

/// Two kernels, 1 ms apart, in a step of 2 ms; in between the host sat in the data loader.
ProfileJson starved() {
  return ProfileJson()
      .range("ProfilerStep#1", 0, 2000)
      .range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 110, 900)
      .op("aten::mm", 2, 8)
      .op("aten::inner", 3, 4)
      .call("cudaLaunchKernel", 5, 2, 1)
      .call("cudaLaunchKernel", 1020, 2, 2)
      .call("cudaStreamSynchronize", 1700, 100, 9)
      .kernel("</script><img src=x>", 10, 90, 7, 1)
      .kernel("gemm", 1100, 90, 7, 2)
      .kernel("ncclDevKernel_AllReduce_Sum_f32", 1200, 100, 20, 3);
}

Json page_of(const ProfileJson& profile) {
  const trace::profile::RankDiagnosis rank = trace::profile::diagnose(profile.read());
  cli::DiagnosePage page;
  page.add(rank);
  return to_json(page.page(trace::profile::findings_of(rank)));
}

const Json* find(const Json& page, const std::string& kind) {
  const auto found = std::find_if(page["sections"].begin(), page["sections"].end(), [&](const Json& section) { return section["kind"] == kind; });
  return found == page["sections"].end() ? nullptr : &*found;
}

const Json* lane(const Json& timeline, const std::string& name) {
  const auto found = std::find_if(timeline["lanes"].begin(), timeline["lanes"].end(), [&](const Json& one) { return one["name"] == name; });
  return found == timeline["lanes"].end() ? nullptr : &*found;
}

/// Microseconds by kind in a lane.
double busy(const Json& timeline, const Json& lane, const std::string& kind) {
  double sum = 0;
  for (const Json& item : lane["items"])
    if (timeline["kinds"][item[2].get<std::size_t>()] == kind) sum += item[5].get<double>() / 1000;
  return sum;
}

}  // namespace

TEST_CASE("the timeline of a step has its kernels, its communication, its gap with the cause, and what the host did") {
  const Json page = page_of(starved());
  const Json* timeline = find(page, "timeline");
  REQUIRE(timeline);
  CHECK((*timeline)["length_ns"] == 2'000'000);
  REQUIRE(lane(*timeline, "stream 7"));
  CHECK(busy(*timeline, *lane(*timeline, "stream 7"), "compute") == doctest::Approx(180));
  REQUIRE(lane(*timeline, "stream 20"));
  CHECK(busy(*timeline, *lane(*timeline, "stream 20"), "communication") == doctest::Approx(100));
  REQUIRE(lane(*timeline, "why idle"));
  CHECK(busy(*timeline, *lane(*timeline, "why idle"), "gap_host_dataloader") == doctest::Approx(1000));
  const auto host = std::find_if((*timeline)["lanes"].begin(), (*timeline)["lanes"].end(),
                                 [](const Json& one) { return one["name"].get<std::string>().starts_with("host"); });
  REQUIRE(host != (*timeline)["lanes"].end());
  CHECK(busy(*timeline, *host, "op") == doctest::Approx(8));  // the inner op is within the outer one
  CHECK(busy(*timeline, *host, "data_loader") == doctest::Approx(900));
  CHECK(busy(*timeline, *host, "synchronize") == doctest::Approx(100));
  CHECK(std::find((*timeline)["names"].begin(), (*timeline)["names"].end(), "</script><img src=x>") != (*timeline)["names"].end());
}

TEST_CASE("a device's parts add up to its window; the findings are those of the report") {
  const Json page = page_of(starved());
  double sum = 0;
  for (const Json& part : (*find(page, "parts"))["rows"][0]["parts"]) sum += part.get<double>();
  CHECK(sum == doctest::Approx(1290e-6));
  CHECK((*find(page, "findings"))["findings"][0]["finding"] == "starved_data_loader");
  REQUIRE(find(page, "bars"));
  CHECK((*find(page, "bars"))["bars"][0]["name"] == "host_dataloader");
  CHECK((*find(page, "bars"))["bars"][0]["value"] == doctest::Approx(1000e-6));
}

TEST_CASE("profiles without steps, without gaps, without a device") {
  const Json plain = page_of(ProfileJson().call("cudaLaunchKernel", 0, 1, 1).kernel("gemm", 10, 1000, 7, 1));
  REQUIRE(find(plain, "timeline"));
  CHECK((*find(plain, "timeline"))["length_ns"] == 1'000'000);
  CHECK(find(plain, "bars") == nullptr);
  const Json none = page_of(ProfileJson().op("aten::mm", 0, 1));
  CHECK(none["sections"].size() == 1);
  CHECK(find(none, "findings") != nullptr);
}

TEST_CASE("only the first devices have a timeline, and the page says so") {
  const trace::profile::RankDiagnosis rank = trace::profile::diagnose(starved().read());
  cli::DiagnosePage page;
  for (int i = 0; i < 6; ++i) page.add(rank);
  const Json json = to_json(page.page({}));
  CHECK(std::count_if(json["sections"].begin(), json["sections"].end(), [](const Json& section) { return section["kind"] == "timeline"; }) == 4);
  CHECK((*find(json, "parts"))["rows"].size() == 6);
  CHECK(json["notices"].size() == 1);
}
