// What the report page is given: data of bounded size that adds up to the report's figures, and foreign texts that stay texts. docs/page.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "cli/page/page.hpp"
#include "cli/page/run_page.hpp"
#include "cli/page/timeline.hpp"
#include "hw_models/embedded.hpp"
#include "support/forecast.hpp"
#include "support/page.hpp"

using namespace stepcast;
using Json = nlohmann::ordered_json;

namespace {

const char* kHostile = "</script><img src=x onerror=alert(1)><!-- & \xe2\x80\xa8 \xff";

using stepcast::test::section_of;

const cli::Prediction& prediction() {
  static const cli::Prediction kPrediction = test::forecast("7b-32xa100", {"/model/layers=4", "/run/steps=3"});
  return kPrediction;
}

}  // namespace

TEST_CASE("texts can't end the element that they stand in, and come back as they were") {
  const std::string safe = cli::script_json({{"text", kHostile}, {kHostile, 1}});
  for (const char* bad : {"<", ">", "&", "\xff"}) CHECK(safe.find(bad) == std::string::npos);
  std::string expected = kHostile;
  expected.replace(expected.size() - 1, 1, "\xef\xbf\xbd");  // no UTF-8: replaced
  CHECK(Json::parse(safe)["text"] == expected);
}

TEST_CASE("the page holds its data once, whatever the texts are") {
  const cli::Page page{"run", kHostile, "%DATA%", {}, {}, {}};
  const std::string html = cli::html_of(page);
  if (html.empty()) {
    MESSAGE("skipped: this build has no report page");
    CHECK(web_files().empty());
    return;
  }
  const std::string data = cli::script_json(to_json(page));
  const std::size_t place = html.find(data);
  REQUIRE(place != std::string::npos);
  CHECK(html.size() == web_files().front().text.size() - std::string("%DATA%").size() + data.size());
  CHECK(html.find("onerror=alert(1)>") == std::string::npos);
}

TEST_CASE("a run's page has the report's figures") {
  const Json page = to_json(cli::page_of(prediction()));
  CHECK(page["schema"] == "stepcast.page/1");
  CHECK(page["command"] == "run");
  const cli::Report& report = prediction().report;
  for (const Json& section : page["sections"]) {
    CHECK_FALSE(section["title"].get<std::string>().empty());
    CHECK_FALSE(section["text"].get<std::string>().empty());
  }
  const Json* waterfall = section_of(page, "waterfall");
  REQUIRE(waterfall);
  double sum = (*waterfall)["ideal_s"];
  for (const Json& loss : (*waterfall)["losses"]) sum += loss["seconds"].get<double>();
  CHECK(sum == doctest::Approx(report.step_time_s).epsilon(1e-9));
  REQUIRE(section_of(page, "parts"));
  double phases = 0;
  for (const Json& row : (*section_of(page, "parts"))["rows"])
    for (const Json& part : row["parts"]) phases += part.get<double>();
  CHECK(phases == doctest::Approx(report.step_time_s).epsilon(1e-9));
}

TEST_CASE("the timeline's lanes hold the time that the report counts") {
  const Json page = to_json(cli::page_of(prediction()));
  const Json* timeline = section_of(page, "timeline");
  REQUIRE(timeline);
  const cli::Report& report = prediction().report;
  CHECK((*timeline)["length_ns"].get<double>() == doctest::Approx(report.step_time_s * 1e9).epsilon(1e-6));
  double gaps = 0, kernels = 0;
  for (const Json& lane : (*timeline)["lanes"]) {
    CHECK(lane["items"].size() <= 4 * cli::Timeline::kFineParts);
    for (const Json& item : lane["items"]) {
      CHECK(item[0].get<std::int64_t>() >= 0);
      CHECK(item[1].get<std::int64_t>() > 0);
      CHECK(item[0].get<std::int64_t>() + item[1].get<std::int64_t>() <= (*timeline)["length_ns"].get<std::int64_t>());
      CHECK(item[2].get<std::size_t>() < (*timeline)["kinds"].size());
      CHECK(item[3].get<std::size_t>() < (*timeline)["names"].size());
      if (lane["name"] == "why idle") gaps += item[5].get<double>();
      if (lane["name"] == "compute") kernels += item[5].get<double>();
    }
  }
  const double expected = std::accumulate(report.gaps.begin(), report.gaps.end(), 0.0, [](double sum, const cli::GapRow& gap) { return sum + gap.total_s; });
  CHECK(gaps == doctest::Approx(expected * 1e9).epsilon(1e-6));  // begins and ends are cut to a nanosecond
  // The sum of the norms runs on the compute stream, and as a collective lies in a gap.
  double norms = 0;
  for (const trace::Slice& slice : prediction().result.trace.ranks.front().slices)
    if (slice.lane == 0 && slice.step == 2 && slice.category == trace::Category::collective) norms += to_seconds(slice.end - slice.begin).in(second)*1e9;
  CHECK(norms > 0);
  CHECK(kernels + gaps - norms == doctest::Approx(report.step_time_s * 1e9).epsilon(1e-6));
}

TEST_CASE("the owners in the memory curve add up to what is allocated, and its peak is the report's") {
  const cli::MemoryCurve curve = cli::memory_curve(prediction().result.trace);
  const cli::Report& report = prediction().report;
  REQUIRE(!curve.allocated.empty());
  CHECK(curve.allocated.size() <= cli::MemoryCurve::kCurvePoints + 1);
  for (std::size_t i = 0; i < curve.allocated.size(); ++i) {
    std::int64_t sum = 0;
    for (const auto& bytes : curve.by_owner) sum += bytes[i];
    REQUIRE(sum == curve.allocated[i]);
  }
  const auto peak = std::max_element(curve.allocated.begin(), curve.allocated.end());
  CHECK(*peak == report.peak_allocated_bytes);
  CHECK(*std::max_element(curve.reserved.begin(), curve.reserved.end()) == report.peak_reserved_bytes);
  const auto& owners = prediction().result.trace.owners;
  for (const cli::OwnerRow& row : report.memory) {
    const auto owner = static_cast<std::size_t>(std::find(owners.begin(), owners.end(), row.owner) - owners.begin());
    CHECK_MESSAGE(curve.by_owner[owner][static_cast<std::size_t>(peak - curve.allocated.begin())] == row.bytes, row.owner);
  }
}

TEST_CASE("a trace that knows no owners has one curve") {
  trace::Trace trace;
  trace.ranks.emplace_back();
  trace.ranks[0].memory = {{SimTime(0), 10, 10, 20, 0}, {SimTime(5'000'000), 5, 15, 20, 0}, {SimTime(9'000'000), -15, 0, 20, 0}};
  const cli::MemoryCurve curve = cli::memory_curve(trace);
  CHECK(curve.owners == std::vector<std::string>{"allocated"});
  CHECK(curve.by_owner[0] == std::vector<std::int64_t>{10, 15, 0});
  CHECK(curve.time_ns == std::vector<std::int64_t>{0, 5'000, 9'000});
}

TEST_CASE("what was asked beside the forecast has sections with the answers' figures") {
  cli::Prediction asked = prediction();
  asked.report.interval = {10, 1, 7, {1.5, 2, 2.5}, {0.4, 0.5, 0.6}, {{"host times", 2.1}, {"network_efficiency", 1.9}}};
  asked.report.step_time_s = 2;
  cli::Extras extras;
  extras.cost = cli::cost_of(asked.report, {1e9, 2, 0});
  extras.roofline = cli::roofline(asked.scenario);
  extras.scaling = {{1, 8, "ok", 2, 1000, 0.5, 1, 0.2, 0, "compute", true, 1}, {2, 16, "ok", 2.5, 800, 0.4, 1, 0.5, 0, "compute", true, 0.8}};
  extras.answers.emplace();
  extras.answers->largest.missing_bytes = 1 << 30;
  const Json page = to_json(cli::page_of(asked, extras));
  CHECK(page["tiles"][0]["note"] == "80 %: 1.500 s to 2.500 s");
  CHECK(page["tiles"][1]["note"].get<std::string>().starts_with("80 %: 40.0 % to 60.0 %; 6P only"));
  CHECK(page["tiles"].back()["label"] == "training on 1,000,000,000 tokens");
  const Json& interval = *section_of(page, "interval");
  CHECK(interval["p90_s"] == 2.5);
  CHECK(interval["causes"][1]["cause"] == "network_efficiency");
  CHECK((*section_of(page, "roofline"))["kernels"] == to_json(*extras.roofline)["kernels"]);
  CHECK((*section_of(page, "roofline"))["micro_batch"] == asked.scenario.batch.micro_batch);
  CHECK((*section_of(page, "scaling"))["text"].get<std::string>().find("80.0 % of the tokens/s/GPU") != std::string::npos);
  const auto titled = [&](const char* title) {
    return *std::find_if(page["sections"].begin(), page["sections"].end(), [&](const Json& section) { return section["title"] == title; });
  };
  CHECK(titled("Training on 1,000,000,000 tokens")["columns"].size() == 3);
  CHECK(titled("What must be true")["rows"][0][2] == "none; one sequence needs 1.000 GiB more than there is");
  const Json plain = to_json(cli::page_of(prediction()));
  for (const char* kind : {"interval", "roofline", "scaling"}) CHECK(section_of(plain, kind) == nullptr);
}

TEST_CASE("a run out of memory shows who held it; fixed costs have no waterfall and no constants") {
  const Json full = to_json(cli::page_of(test::forecast("7b-32xa100", {"/batch/micro_batch=16"})));
  CHECK(full["tiles"][0]["value"] == "out of memory");
  REQUIRE(section_of(full, "bars"));
  CHECK((*section_of(full, "bars"))["title"] == "What held the memory");
  CHECK(section_of(full, "timeline") == nullptr);
  const char* fixed =
      R"({"model": {"layers": 2}, "cluster": {"nodes": 1, "gpus_per_node": 2}, "batch": {"micro_batch": 1, "seq_len": 8}, "fixed_costs": {"block_forward": "1 ms"}})";
  const Json costs = to_json(cli::page_of(test::forecast_text(fixed)));
  CHECK(section_of(costs, "waterfall") == nullptr);
  CHECK(section_of(costs, "folded_table") == nullptr);
  CHECK(section_of(costs, "timeline") != nullptr);
}

TEST_CASE("stages are in order, and one that does not fit has no MFU") {
  std::vector<cli::Report> stages(2, prediction().report);
  stages[0].scenario.name = kHostile;
  stages[1].outcome = "out_of_memory";
  const Json page = to_json(cli::page_of(prediction(), {}, stages));
  CHECK(page["command"] == "demo");
  const Json* progression = section_of(page, "progression");
  REQUIRE(progression);
  CHECK((*progression)["stages"][0]["name"] == kHostile);
  CHECK((*progression)["stages"][0]["mfu"] == prediction().report.mfu);
  CHECK((*progression)["stages"][1]["mfu"].is_null());
}
