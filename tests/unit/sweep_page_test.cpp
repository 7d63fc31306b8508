// The pages of a sweep and of a search: points in the grid's order, the front of time against headroom. docs/page.md.
#include <doctest/doctest.h>

#include <algorithm>

#include "cli/page/sweep_page.hpp"
#include "cli/page/tune_page.hpp"

using namespace stepcast;
using cli::ParetoPoint, cli::PointRow;
using Json = nlohmann::ordered_json;

namespace {

planner::Grid grid_of(const std::vector<std::string>& axes) {
  std::vector<planner::Axis> parsed;
  for (const std::string& axis : axes) parsed.push_back(planner::parse_axis(axis));
  return planner::Grid(parsed);
}

PointRow ran(double step_time, double tokens, std::int64_t headroom) {
  PointRow row;
  row.outcome = "ok";
  row.bound = "compute";
  row.step_time_s = step_time;
  row.tokens_per_s_per_gpu = tokens;
  row.headroom_bytes = headroom;
  row.has_headroom = true;
  return row;
}

PointRow failed(const char* outcome, std::int64_t missing) {
  PointRow row;
  row.outcome = outcome;
  row.missing_bytes = missing;
  return row;
}

Json page_of(const planner::Grid& grid, const std::vector<PointRow>& rows) {
  cli::SweepPage page("case", grid);
  for (std::size_t i = 0; i < rows.size(); ++i) page.add(i, rows[i]);
  return to_json(page.page());
}

}  // namespace

TEST_CASE("on the front is what no other beats in both") {
  std::vector<ParetoPoint> points = {{3, 30, "slow, roomy"},       {1, 10, "fast"}, {2, 10, "slower, not roomier"}, {2, 20, "between"},
                                     {1, 5, "as fast, less room"}, {4, 30, "worst"}};
  cli::mark_front(points);
  const std::vector<bool> expected = {true, true, false, true, false, false};
  for (std::size_t i = 0; i < points.size(); ++i) CHECK_MESSAGE(points[i].on_front == expected[i], points[i].words);
}

TEST_CASE("a sweep's page has every point in the grid's order, with null for what did not run") {
  const planner::Grid grid = grid_of({"/batch/micro_batch=1,2", "/recompute/mode=none,</script>"});
  const Json page = page_of(grid, {ran(2, 100, 50), failed("out_of_memory", 7), ran(4, 50, 60), failed("refused", 0)});
  const Json& section = page["sections"][0];
  REQUIRE(section["kind"] == "grid");
  CHECK(section["axes"][1]["values"][1] == "</script>");
  CHECK(section["outcomes"].dump() == R"(["ok","out_of_memory","ok","refused"])");
  CHECK(section["missing_bytes"].dump() == "[null,7,null,null]");
  CHECK(section["metrics"][0]["name"] == "tokens/s/GPU");  // no MFU without a peak
  CHECK(section["metrics"][0]["values"].dump() == "[100.0,null,50.0,null]");
  CHECK(section["text"] == "The fastest: micro_batch=1, mode=none, 100 tokens/s/GPU.");
  const Json& pareto = page["sections"][1];
  REQUIRE(pareto["kind"] == "pareto");
  CHECK(pareto["label"] == "step time");  // 200 tokens in both
  CHECK(pareto["points"].size() == 2);
}

TEST_CASE("where points differ in tokens per step, the time for a token is compared") {
  const planner::Grid grid = grid_of({"/batch/micro_batch=1,2"});
  const Json page = page_of(grid, {ran(2, 100, 50), ran(3, 200, 60)});
  const Json& pareto = page["sections"][1];
  CHECK(pareto["label"] == "time for a token of a GPU");
  CHECK(pareto["points"][0]["time_s"] == doctest::Approx(0.005));
  CHECK(pareto["points"][0]["front"] == true);  // faster and roomier
  CHECK(pareto["points"][1]["front"] == false);
}

TEST_CASE("a sweep without a point that ran, and one that is too large to draw") {
  const planner::Grid small = grid_of({"/batch/micro_batch=1,2"});
  const Json none = page_of(small, {failed("out_of_memory", 1), failed("deadlock", 0)});
  CHECK(none["sections"].size() == 1);
  CHECK(none["tiles"].size() == 2);
  const planner::Grid large = grid_of({"/batch/micro_batch=1..200", "/batch/seq_len=1..200"});
  std::vector<PointRow> rows;
  for (std::size_t i = 0; i < large.size(); ++i) rows.push_back(ran(1 + static_cast<double>(i % 977), 5, static_cast<std::int64_t>(i % 977)));
  const Json page = page_of(large, rows);
  CHECK(page["sections"][0]["kind"] == "pareto");
  CHECK(page["sections"][0]["points"].size() <= 1500 + 977);
  CHECK(page["notices"].size() == 1);
}

TEST_CASE("the front of many points, kept as they come, is that of all of them") {
  const planner::Grid grid = grid_of({"/batch/micro_batch=1..250", "/batch/seq_len=1..120"});
  std::vector<PointRow> rows;
  std::vector<ParetoPoint> all;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const auto noise = static_cast<double>(i * 7919 % 10007);
    rows.push_back(ran(1 + noise / 1e4, 1000 / (1 + noise / 1e4), static_cast<std::int64_t>(2 * noise + static_cast<double>(i * 104729 % 15013))));
    all.push_back({rows.back().step_time_s, rows.back().headroom_bytes, ""});
  }
  cli::mark_front(all);
  const auto front = std::count_if(all.begin(), all.end(), [](const ParetoPoint& p) { return p.on_front; });
  REQUIRE(front > 20);
  const Json page = page_of(grid, rows);
  const Json& drawn = page["sections"][0]["points"];
  CHECK(std::count_if(drawn.begin(), drawn.end(), [](const Json& p) { return p["front"] == true; }) == front);
  CHECK(drawn.size() == static_cast<std::size_t>(front) + 1500);
  // Of the beaten ones, the fastest.
  std::vector<double> beaten, shown;
  for (const ParetoPoint& p : all)
    if (!p.on_front) beaten.push_back(p.time);
  for (const Json& p : drawn)
    if (p["front"] == false) shown.push_back(p["time_s"]);
  std::sort(beaten.begin(), beaten.end());
  beaten.resize(shown.size());
  CHECK(shown == beaten);
}

TEST_CASE("a search's page has its decisions, its front and the texts to paste") {
  cli::TuneResult result;
  result.scenario = "case";
  CHECK(to_json(cli::tune_page(result))["notices"].size() == 1);  // nothing fits
  result.best = {{"fast", {"/a=1"}, 1.0, 100, 0.5, 10, 5}};
  result.front = {result.best[0], {"roomy", {"/a=2"}, 2.0, 50, 0.25, 5, 10}};
  result.decisions = {{"Does it fit?", "yes", "more", {"/a=1"}, "ok", 1.0, 0.5, 0.25}};
  result.settings = {{"fsdp1", "text </script>"}};
  const Json page = to_json(cli::tune_page(result));
  CHECK(page["headline"] == "fast");
  CHECK(page["sections"][0]["decisions"][0]["gain"] == 0.25);
  REQUIRE(page["sections"][1]["kind"] == "pareto");
  CHECK(page["sections"][1]["points"].back()["words"] == "roomy");
  CHECK(page["sections"].back()["blocks"][0]["text"] == "text </script>");
}
