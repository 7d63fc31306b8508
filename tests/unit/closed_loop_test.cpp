// Errors, order and memory of the closed loop on planted rows; forecasts from a planted file. Nothing here is timed. docs/validate.md, "Scenarios".
#include "cli/validate/closed_loop.hpp"

#include <doctest/doctest.h>

#include "cli/report/closed_loop.hpp"
#include "hw_models/input_error.hpp"

using namespace stepcast;
using namespace stepcast::cli;

namespace {

LoopRow row(const std::string& id, double predicted, double measured, double noise = 0.01) {
  LoopRow row;
  row.id = id;
  row.predicted = {predicted, 0.001, {1 << 20, 2 << 20}};
  row.measured = {measured, 0.002, {1 << 20, 2 << 20}};
  row.rounds = {{1 << 20, 2 << 20}, {1 << 20, 3 << 20}};
  row.noise = noise;
  row.steps = 10;
  return row;
}

Loop planted() {
  Loop loop;
  loop.measurements = {{"machine", {{"gpu", "a processor"}}}};
  loop.rows = {row("a", 1.1, 1.0), row("b", 1.9, 2.0), row("c", 1.8, 2.1), row("d", 1.0, 1.005)};
  loop.rows[2].predicted.peaks.reserved_bytes += 1;
  loop.rows.push_back(row("e", 5, 1));
  loop.rows.back().failures = {"rank 1: something"};
  return loop;
}

}  // namespace

TEST_CASE("Errors of the rows that were compared; pairs in order, where they differ by more than their noise") {
  const LoopSummary s = summarize(planted().rows);
  CHECK(s.step.count == 4);
  CHECK(s.step.max == doctest::Approx(0.3 / 2.1));  // c
  CHECK(s.pairs == 5);                              // a and d differ by less
  CHECK(s.ordered == 4);                            // b and c are in the wrong order
  CHECK(s.memory_exact == 3);
  CHECK(s.median_noise == doctest::Approx(0.01));
}

TEST_CASE("Text, JSON and CSV hold what was compared, and what failed") {
  const Loop loop = planted();
  const std::string text = to_text(loop);
  CHECK(text.find("4 of 5 pairs") != std::string::npos);
  CHECK(text.find("e: rank 1: something") != std::string::npos);
  const auto json = to_json(loop);
  CHECK(json["rows"].size() == 5);
  CHECK(json["rows"][0]["rel_error"].get<double>() == doctest::Approx(0.1));
  CHECK(json["rows"][0]["memory_exact_rounds"] == 1);
  CHECK(json["rows"][2]["memory_exact_rounds"] == 0);
  CHECK(json["rows"][4]["measured"].is_null());
  CHECK(json["rows"][4]["rel_error"].is_null());
  CHECK(json["summary"]["pairs_in_order"] == 4);
  const std::string csv = to_csv(loop);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 6);
  CHECK(csv.find("e,1,ok,5,") != std::string::npos);
}

TEST_CASE("A file without any operation is refused before anything runs") {
  const nlohmann::ordered_json empty = {{"schema", "stepcast.bench/1"}, {"machine", {{"gpu", "x"}}}, {"rows", nlohmann::ordered_json::array()}};
  CHECK_THROWS_AS(host_profiles_of(empty, "m.json"), InputError);
  CHECK_THROWS_AS(loop_scenarios("no-such-folder", {}), InputError);
}
