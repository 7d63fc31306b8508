// `stepcast sweep` as a user meets it. docs/sweep.md.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/place.hpp"

using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line, stepcast::test::read;
using Json = nlohmann::ordered_json;

namespace {

const std::string kSweep = "sweep 7b-32xa100 --set /model/layers=2 --set /run/steps=3 ";

}  // namespace

TEST_CASE("sweep --json: points in the order of the grid, each with what was set and the report of a run") {
  const Place place;
  const Outcome r = place.run(kSweep + "--vary /batch/micro_batch=1..4:*2 --vary /policy/framework=fsdp1,fsdp2 --json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json points = Json::parse(r.out)["points"];
  REQUIRE(points.size() == 6);
  CHECK(points[3]["set"] == Json::parse(R"({"/batch/micro_batch": 2, "/policy/framework": "fsdp2"})"));
  Json run =
      Json::parse(place.run("run 7b-32xa100 --set /model/layers=2 --set /run/steps=3 --set /batch/micro_batch=2 --set /policy/framework=fsdp2 --json").out);
  run.erase("resolved_scenario");
  run.erase("assumptions");
  CHECK(points[3]["report"] == run);
}

TEST_CASE("sweep shows points that don't fit with the missing memory, and none that fits is exit code 4") {
  const Place place;
  const std::string sweep = "sweep 7b-32xa100 --set /run/steps=2 --vary /batch/micro_batch=";
  const Outcome some = place.run(sweep + "1,16");
  CHECK(some.code == 0);
  CHECK(has(some.out, "out of memory: "));
  CHECK(has(some.out, " GiB missing"));
  const Outcome none = place.run(sweep + "16 --json");
  CHECK(none.code == 4);
  CHECK(Json::parse(none.out)["points"][0]["missing_bytes"] > 0);
}

TEST_CASE("sweep --out keeps what is done: the next sweep simulates only what is new") {
  const Place place;
  REQUIRE(place.run(kSweep + "--vary /batch/micro_batch=1,2 --out out --csv a.csv").code == 0);
  const Outcome again = place.run(kSweep + "--vary /batch/micro_batch=1,2,3 --out out --csv b.csv");
  REQUIRE(again.code == 0);
  CHECK(has(again.err, "1 scenarios simulated with 1 programs, 2 kept from an earlier sweep"));
  const std::string before = read(place / "a.csv"), after = read(place / "b.csv");
  CHECK(after.substr(0, before.size()) == before);
  CHECK(read((place / "out") / "sweep.csv") == after);
  CHECK(Json::parse(read((place / "out") / "report.json"))["points"].size() == 3);
}

TEST_CASE("--csv replaces what a sweep wrote, and nothing else") {
  const Place place;
  const std::string sweep = kSweep + "--vary /batch/micro_batch=1,2 --csv a.csv";
  REQUIRE(place.run(sweep).code == 0);
  const std::string first = read(place / "a.csv");
  CHECK(place.run(sweep).code == 0);
  place.file("a.csv", "mine\n");
  const Outcome refused = place.run(sweep);
  CHECK(refused.code == 2);
  CHECK(one_line(refused.err));
  CHECK(read(place / "a.csv") == "mine\n");
  CHECK(place.run(sweep + " --force").code == 0);
  CHECK(read(place / "a.csv") == first);
}

TEST_CASE("a sweep file names scenario, settings and axes; the command line adds to it") {
  const Place place;
  place.file("base.json", R"({"base": "7b-32xa100", "model": {"layers": 2}})");
  place.file("sweep.json", R"({"scenario": "base.json", "set": ["/run/steps=3"], "vary": [{"pointer": "/batch/micro_batch", "range": "1..2"}]})");
  const Outcome r = place.run("sweep --file sweep.json --vary /cluster/nodes=1,2 --json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json points = Json::parse(r.out)["points"];
  REQUIRE(points.size() == 4);
  CHECK(points[1]["set"] == Json::parse(R"({"/batch/micro_batch": 1, "/cluster/nodes": 2})"));
  CHECK(points[1]["report"]["steps"] == 3);
}

TEST_CASE("a sweep that can't be is exit code 2 and one line") {
  const Place place;
  place.file("bad.json", R"({"scenario": "7b-32xa100", "vary": [], "very": 1})");
  for (const char* arguments :
       {"sweep", "sweep 7b-32xa100", "sweep 7b-32xa100 --vary nonsense", "sweep 7b-32xa100 --vary /no/such=1,2",
        "sweep 7b-32xa100 --vary /batch/micro_batch=1,zero", "sweep --file bad.json", "sweep --file no-such.json", "sweep 7b-32xa100 --file bad.json",
        "sweep 7b-32xa100 --vary /batch/micro_batch=1,1", "sweep no-such --vary /batch/micro_batch=1"}) {
    const Outcome r = place.run(arguments);
    CHECK_MESSAGE(r.code == 2, arguments);
    CHECK_MESSAGE(one_line(r.err), arguments);
    CHECK_MESSAGE(r.out.empty(), arguments);
  }
}
