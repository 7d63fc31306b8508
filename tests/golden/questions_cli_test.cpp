// Questions that `stepcast run` answers, as a user meets them. docs/questions.md.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/place.hpp"

using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line;
using Json = nlohmann::ordered_json;

namespace {

const std::string kRun = "run 7b-32xa100 --set /model/layers=2 --set /run/steps=3 ";

}  // namespace

TEST_CASE("roofline, scaling and what must be true stand beside the report") {
  const Place place;
  const Outcome r = place.run(kRun + "--roofline --scaling 1,4 --target-mfu 0.9 --json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json json = Json::parse(r.out);
  CHECK(json["roofline"]["kernels"][0]["bound"] == "compute");
  CHECK(json["scaling"][1]["step_time_s"] == json["step_time_s"]);  // the scenario has four nodes
  CHECK(json["what_must_be_true"]["hidden"][0]["communication"] == "all-gather");
  CHECK(json["what_must_be_true"]["target"]["mfu"] == 0.9);
  const Outcome text = place.run(kRun + "--roofline --scaling 1,4 --what-must-be-true");
  for (const char* part : {"Roofline: ", "By number of nodes", "What must be true", "Largest micro-batch that fits: "})
    CHECK_MESSAGE(has(text.out, part), part);
  CHECK_FALSE(has(text.out, "MFU of"));  // not asked
}

TEST_CASE("questions that can't be asked are one line and exit code 2") {
  const Place place;
  for (const char* arguments : {"--exposed-below 0.1", "--target-mfu 2", "--target-mfu nan", "--train-tokens nan", "--train-tokens 1e12 --gpu-watts nan",
                                "--gpu-watts 400", "--scaling 0", "--scaling x", "--what-must-be-true --exposed-below 0"}) {
    const Outcome r = place.run(kRun + arguments);
    CHECK_MESSAGE(r.code == 2, arguments);
    CHECK_MESSAGE(one_line(r.err), arguments);
  }
}
