// The page of a comparison adds up, and takes reports as they come. docs/page.md.
#include <doctest/doctest.h>

#include "cli/page/compare_page.hpp"
#include "cli/report/compare.hpp"
#include "support/forecast.hpp"

using namespace stepcast;
using Json = nlohmann::ordered_json;

TEST_CASE("the parts lead from the first step time to the second") {
  const std::vector<std::string> base = {"/model/layers=4", "/run/steps=3"};
  std::vector<std::string> changed = base;
  changed.emplace_back("/policy/backward_prefetch=NONE");
  const Json a = cli::json_of(test::forecast("7b-32xa100", base)), b = cli::json_of(test::forecast("7b-32xa100", changed));
  const Json page = to_json(cli::compare_page(cli::compare({"a", "</script>"}, {a, b})));
  CHECK(page["title"] == "a against </script>");
  CHECK(page["tiles"].size() == 2);
  CHECK(page["sections"][0]["stages"].size() == 2);
  const Json& bridge = page["sections"][1];
  REQUIRE(bridge["kind"] == "bridge");
  double at = bridge["from"]["seconds"];
  CHECK(at == a["step_time_s"].get<double>());
  for (const Json& part : bridge["parts"]) at += part["delta_s"].get<double>();
  CHECK(at == doctest::Approx(b["step_time_s"].get<double>()).epsilon(1e-9));
  CHECK(page["sections"][2]["rows"][0][0] == "/policy/backward_prefetch");
}

TEST_CASE("a report without times has its outcome, and one that is little more than its name is taken as it is") {
  const Json a = cli::json_of(test::forecast("7b-32xa100", {"/batch/micro_batch=16"}));
  const Json page = to_json(cli::compare_page(cli::compare({"a", "b"}, {a, Json{{"schema", "stepcast.report/1"}, {"mfu", "much"}, {"scenario", 7}}})));
  CHECK(page["tiles"][0]["value"] == "out_of_memory");
  CHECK(page["sections"][0]["kind"] != "bridge");
}
