// Rows of a scaling table against forecasts of their own. docs/questions.md, "Scaling".
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/run/scaling.hpp"
#include "support/forecast.hpp"

using namespace stepcast;

namespace {

std::vector<cli::ScalingRow> scaled(std::vector<std::string> sets, const std::vector<std::int64_t>& nodes) {
  sets.insert(sets.begin(), {"/run/steps=3", "/model/layers=4"});
  return cli::scaling(scenarios::ScenarioTemplate("7b-32xa100", sets), nodes, 2);
}

}  // namespace

TEST_CASE("each row is the forecast of its cluster; efficiency is relative to the first") {
  const auto rows = scaled({}, {1, 2, 8});
  REQUIRE(rows.size() == 3);
  for (const cli::ScalingRow& row : rows) {
    const cli::Report own = test::forecast("7b-32xa100", {"/run/steps=3", "/model/layers=4", "/cluster/nodes=" + std::to_string(row.nodes)}).report;
    CHECK(row.outcome == "ok");
    CHECK(row.gpus == 8 * row.nodes);
    CHECK(row.step_time_s == own.step_time_s);
    CHECK(row.mfu == own.mfu);
    CHECK(row.exposed_comm_s == own.exposed_comm_s);
    CHECK(row.peak_reserved_bytes == own.peak_reserved_bytes);
    CHECK(row.efficiency == doctest::Approx(own.tokens_per_s_per_gpu / rows[0].tokens_per_s_per_gpu));
  }
  CHECK(rows[0].efficiency == 1);
}

TEST_CASE("a row that does not run says why, and is not what the others are compared with") {
  const auto unfit = scaled({"/model/layers=32", "/allocator/device_memory=30 GiB"}, {1, 16});
  CHECK(unfit[0].outcome == "out_of_memory");
  const auto refused = scaled({"/policy=null", "/policy/framework=fsdp2", "/policy/reshard_after_forward=16"}, {1, 4});
  CHECK(refused[0].outcome.find("reshard_after_forward") != std::string::npos);
  CHECK(refused[1].outcome == "ok");
  CHECK(refused[1].efficiency == 1);
  const auto json = cli::to_json(refused);
  CHECK(json[0]["step_time_s"].is_null());
  CHECK(json[1]["gpus"] == 32);
  CHECK(cli::to_text(refused).find("efficiency") != std::string::npos);
}
