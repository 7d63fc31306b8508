// Comparisons of reports: the parts add up to the whole, other batch sizes are scaled, and anything may be missing from a file.
#include "cli/report/compare.hpp"
#include "support/text.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace stepcast::cli;
using Json = nlohmann::ordered_json;

namespace {

Json report(double step, double all_gather, double tokens) {
  return {{"step_time_s", step},
          {"tokens_per_step_per_gpu", tokens},
          {"tokens_per_s_per_gpu", tokens / step},
          {"peak_allocated_bytes", 3 << 20},
          {"gaps", {{"all_gather", {{"count", 3}, {"total_s", all_gather}}}}},
          {"phases", {{"forward", {{"span_s", step / 2}, {"exposed_comm_s", all_gather}, {"idle_s", 0.0}}}}},
          {"memory", {{"parameters", 1 << 20}, {"activations", 2 << 20}}},
          {"resolved_scenario", {{"name", "x"}, {"policy", {{"forward_prefetch", false}}}}}};
}

using stepcast::test::has;

}  // namespace

TEST_CASE("the parts of a difference add up to the difference of the step") {
  Json a = report(1.0, 0.4, 1000), b = report(0.7, 0.05, 1000);
  b["resolved_scenario"]["policy"]["forward_prefetch"] = true;
  b["resolved_scenario"]["name"] = "y";
  const Json c = compare({"a", "b"}, {a, b});
  const Json& d = c["differences"][0];
  CHECK(d["step_time"]["delta_s"].get<double>() == doctest::Approx(-0.3));
  double sum = 0;
  for (const Json& part : d["step_time"]["parts"]) sum += part["delta_s"].get<double>();
  CHECK(sum == doctest::Approx(-0.3));
  CHECK(d["step_time"]["parts"][0]["part"] == "idle: all_gather");  // the largest first: -0.35 against kernels +0.05
  REQUIRE(d["settings"].size() == 1);                               // the name doesn't count
  CHECK(d["settings"][0]["pointer"] == "/policy/forward_prefetch");
  const std::string text = compare_text(c);
  INFO(text);
  CHECK(has(text, "/policy/forward_prefetch  false  -> true"));
  CHECK(has(text, "step time 1.000 s -> 700.0 ms (-300.0 ms, -30.0 %), of which"));
}

TEST_CASE("a report with twice the tokens is scaled to the first") {
  const Json c = compare({"a", "b"}, {report(1.0, 0.2, 1000), report(1.8, 0.2, 2000)});
  const Json& step = c["differences"][0]["step_time"];
  CHECK(step["to_s"].get<double>() == doctest::Approx(0.9));
  CHECK(step["scaled_to_tokens"] == 1000.0);
  CHECK(c["differences"][0]["phases"][0]["to_span_s"].get<double>() == doctest::Approx(0.45));
  CHECK(has(compare_text(c), "scaled to 1,000 tokens per GPU"));
}

TEST_CASE("memory differences name the owner, largest first") {
  Json b = report(1.0, 0.2, 1000);
  b["memory"] = {{"parameters", 1 << 20}, {"activations", 1 << 19}, {"all_gather", 1 << 18}};
  b["peak_allocated_bytes"] = 1.75 * (1 << 20);
  const Json c = compare({"a", "b"}, {report(1.0, 0.2, 1000), b});
  const Json& rows = c["differences"][0]["memory"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["owner"] == "activations");
  CHECK(rows[0]["delta_bytes"] == -(3 << 19));
  CHECK(has(compare_text(c), "activations  2.000 MiB  -> 512.0 KiB  -1.500 MiB"));
}

TEST_CASE("whatever a report lacks or holds of the wrong type is told as missing, never a crash") {
  for (const Json& odd :
       {Json::object(), Json(nullptr), Json::array({1, 2}), Json{{"step_time_s", "fast"}, {"gaps", {1, 2}}, {"memory", 7}, {"phases", {{"forward", nullptr}}}},
        Json{{"step_time_s", nullptr}, {"outcome", "out_of_memory"}, {"gaps", {{"x", 3}}}, {"bound", 5}}}) {
    const Json c = compare({"a", "b", "c"}, {report(1.0, 0.2, 1000), odd, report(1.0, 0.2, 1000)});
    CHECK(c["differences"][0]["step_time"].is_null());
    CHECK(has(compare_text(c), "step time"));
    CHECK(!compare_text(compare({"a", "b"}, {odd, report(1.0, 0.2, 1000)})).empty());
  }
}
