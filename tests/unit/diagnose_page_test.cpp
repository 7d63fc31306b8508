// The page of a diagnosis: lanes, gaps and shares are the profile's own, and names are only names. docs/page.md.
#include <doctest/doctest.h>

#include <algorithm>

#include "cli/diagnose/inferred.hpp"
#include "cli/page/diagnose_page.hpp"
#include "support/page.hpp"
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

using stepcast::test::section_of;

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
  const Json* timeline = section_of(page, "timeline");
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
  for (const Json& part : (*section_of(page, "parts"))["rows"][0]["parts"]) sum += part.get<double>();
  CHECK(sum == doctest::Approx(1290e-6));
  CHECK((*section_of(page, "findings"))["findings"][0]["finding"] == "starved_data_loader");
  REQUIRE(section_of(page, "bars"));
  CHECK((*section_of(page, "bars"))["bars"][0]["name"] == "host_dataloader");
  CHECK((*section_of(page, "bars"))["bars"][0]["value"] == doctest::Approx(1000e-6));
}

TEST_CASE("profiles without steps, without gaps, without a device") {
  const Json plain = page_of(ProfileJson().call("cudaLaunchKernel", 0, 1, 1).kernel("gemm", 10, 1000, 7, 1));
  REQUIRE(section_of(plain, "timeline"));
  CHECK((*section_of(plain, "timeline"))["length_ns"] == 1'000'000);
  CHECK(section_of(plain, "bars") == nullptr);
  const Json none = page_of(ProfileJson().op("aten::mm", 0, 1));
  CHECK(none["sections"].size() == 1);
  CHECK(section_of(none, "findings") != nullptr);
}

TEST_CASE("only the first devices have a timeline, and the page says so") {
  const trace::profile::RankDiagnosis rank = trace::profile::diagnose(starved().read());
  cli::DiagnosePage page;
  for (int i = 0; i < 6; ++i) page.add(rank);
  const Json json = to_json(page.page({}));
  CHECK(std::count_if(json["sections"].begin(), json["sections"].end(), [](const Json& section) { return section["kind"] == "timeline"; }) == 4);
  CHECK((*section_of(json, "parts"))["rows"].size() == 6);
  CHECK(json["notices"].size() == 1);
}

namespace {

/// A draft with a key of each certainty, and a step of 10 ms that is predicted as one of 8.
cli::Inferred inferred() {
  cli::Inferred out;
  cli::TraceScenario scenario;
  scenario.draft.seen("/model/hidden", 64, "a side of every linear layer's weight");
  scenario.draft.given("/model/layers", 2, "--model");
  scenario.draft.guess("/cluster/nodes", 1, "</script><img src=x>");
  scenario.draft.missing("/model/vocab", "neither a head nor the embedding's shape is in the file");
  scenario.problem = "/model/vocab is missing";
  out.scenario = std::move(scenario);
  out.training = true;
  out.utilisation = cli::Utilisation{0.01, 1e12, 312e12, 5000};
  out.compared = cli::SideBySide{
      "ok", {{"step", 10000, 8000}, {"compute", 6000, 6500}, {"exposed communication", 1000, 500}, {"idle", 2500, 800}, {"backward kernels", 0, 0}}};
  return out;
}

Json page_of(const cli::Inferred& inferred, const ProfileJson& profile) {
  const trace::profile::RankDiagnosis rank = trace::profile::diagnose(profile.read());
  cli::DiagnosePage page;
  page.add(inferred);
  page.add(rank);
  return to_json(page.page({}));
}

const Json* titled(const Json& page, const std::string& title) {
  const auto found = std::find_if(page["sections"].begin(), page["sections"].end(),
                                  [&](const Json& section) { return section["title"].get<std::string>().starts_with(title); });
  return found == page["sections"].end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("the scenario behind the trace: each key with how sure it is, what is missing first and in words") {
  const Json page = page_of(inferred(), starved());
  const Json* keys = titled(page, "The scenario behind this trace");
  REQUIRE(keys);
  CHECK((*keys)["kind"] == "folded_table");  // it does not run
  CHECK((*keys)["text"] == "1 keys are seen in the file, 1 given, 1 guessed, 1 missing: /model/vocab. It can't be run yet: /model/vocab is missing");
  std::vector<std::string> order;
  for (const Json& row : (*keys)["rows"]) order.push_back(row[2]);
  CHECK(order == std::vector<std::string>{"missing", "guessed", "given", "seen"});
  CHECK((*keys)["rows"][1] == Json{"/cluster/nodes", "1", "guessed", "</script><img src=x>"});
  CHECK((*keys)["rows"][0][1] == "");
}

TEST_CASE("the predicted step beside the traced one: parts that add up to it, and every compared time") {
  const Json page = page_of(inferred(), starved());
  const Json* chart = titled(page, "A step, predicted and traced");
  REQUIRE(chart);
  for (const auto& [row, step] : {std::pair<std::size_t, double>{0, 0.01}, {1, 0.008}}) {
    double sum = 0;
    for (const Json& part : (*chart)["rows"][row]["parts"]) sum += part.get<double>();
    CHECK(sum == doctest::Approx(step));
  }
  CHECK((*chart)["rows"][0]["parts"]["exposed copies"].get<double>() == doctest::Approx(0.0005));
  const Json* table = titled(page, "Predicted beside traced");
  REQUIRE(table);
  CHECK((*table)["rows"].size() == 4);  // what neither has is left out
  CHECK((*table)["rows"][0] == Json{"step", "10.00 ms", "8.000 ms", "0.800"});
  std::vector<std::string> labels;
  for (const Json& tile : page["tiles"]) labels.push_back(tile["label"]);
  for (const char* label : {"MFU", "tokens/s/GPU", "predicted step"}) CHECK(std::find(labels.begin(), labels.end(), label) != labels.end());
  cli::Inferred broken = inferred();
  broken.compared = cli::SideBySide{"out_of_memory", {}};
  const Json without = page_of(broken, starved());
  CHECK(titled(without, "Predicted") == nullptr);
  CHECK((*titled(without, "The scenario"))["text"].get<std::string>().ends_with("Simulated, it does not run: out_of_memory."));
}

TEST_CASE("what the device reached: FLOP/s by shape against the peak, bus bandwidth by message") {
  ProfileJson profile;
  profile.event("cpu_op", "aten::mm", 0, 5, 1, R"("External id":4,"Input Dims":[[64, 32], [32, 16]])")
      .raw(R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":2,"args":{"device":0,"stream":7,"correlation":1,"External id":4}})")
      .raw(
          R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_RING_LL","pid":0,"tid":20,"ts":20,"dur":100,"args":{"device":0,"stream":20,"correlation":2,)"
          R"("Collective name":"_allgather_base","In msg nelems":1000000,"Out msg nelems":8000000,"Group size":8,"dtype":"BFloat16"}})");
  const Json page = page_of(inferred(), profile);
  const Json* products = titled(page, "FLOP/s of matrix products");
  REQUIRE(products);
  CHECK((*products)["bars"][0]["name"] == "aten::mm [[64, 32], [32, 16]]");
  CHECK((*products)["bars"][0]["value"].get<double>() == doctest::Approx(2.0 * 64 * 32 * 16 / 2e-6));
  CHECK((*products)["text"].get<std::string>().ends_with("The device's peak: 312 TFLOP/s."));
  const Json* bandwidth = titled(page, "Bus bandwidth");
  REQUIRE(bandwidth);
  CHECK((*bandwidth)["bars"][0]["value"].get<double>() == doctest::Approx(16e6 / 100e-6 * 7 / 8));
  CHECK(titled(page_of(inferred(), starved()), "Bus bandwidth") == nullptr);  // no sizes are recorded
}
