// `stepcast validate` as a user meets it: text, JSON, files, filters, and refused tables. docs/validate.md.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/place.hpp"

using Json = nlohmann::ordered_json;
using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line, stepcast::test::read;

namespace {

const std::string kTable =
    "id,source,model,gpu,n_gpus,sharding,micro_batch,precision,act_ckpt,tokens_per_s_per_gpu,d_model,n_layers,n_heads,ffn_dim,ffn_kind,vocab,seq_len,framework,"
    "tier,weather\n"
    "a,lab,small,a100-80gb,8,FULL_SHARD,2,bf16,none,50000,1024,4,8,4096,swiglu,32000,1024,fsdp1,A,fair\n"
    "b,lab,small,h100,8,full,2,bf16,none,90000,1024,4,8,4096,swiglu,32000,1024,fsdp2,B,fair\n"
    "c,\"a, lab\",small,a100-80gb,8,FULL_SHARD,2,FP8,none,50000,1024,4,8,4096,swiglu,32000,1024,fsdp1,A,fair\n";

}  // namespace

TEST_CASE("rows, summaries and skipped rows as JSON; unknown columns are named once") {
  const Place place;
  place.file("runs.csv", kTable);
  const Outcome r = place.run("validate runs.csv --json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  CHECK(one_line(r.err));
  CHECK(has(r.err, "weather"));
  const Json json = Json::parse(r.out);
  REQUIRE(json["rows"].size() == 2);
  CHECK(json["rows"][0]["id"] == "a");
  CHECK(json["rows"][0]["measured"]["tokens_per_s_per_gpu"] == 50000);
  CHECK(json["rows"][0]["predicted"]["outcome"] == "ok");
  CHECK(json["rows"][0]["predicted"]["mfu"].get<double>() > 0);
  CHECK(json["rows"][0]["rel_error"].get<double>() == doctest::Approx(json["rows"][0]["predicted"]["tokens_per_s_per_gpu"].get<double>() / 50000 - 1));
  CHECK(json["summary"]["count"] == 2);
  CHECK(json["by_source"]["lab"]["count"] == 2);
  REQUIRE(json["skipped"].size() == 1);
  CHECK(json["skipped"][0]["id"] == "c");
  CHECK(place.run("validate runs.csv --json --threads 3").out == r.out);
}

TEST_CASE("filters, the CSV file and the folder") {
  const Place place;
  place.file("runs.csv", kTable);
  const Outcome r = place.run("validate runs.csv --tier A --gpu a100 --source lab --csv rows.csv --out out");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  CHECK(has(r.out, "tier A"));
  CHECK(!has(r.out, "tier B"));
  CHECK(has(read(place / "rows.csv"), "a,lab,A,a100-80gb,8,small,50000,"));
  CHECK(read(place / "rows.csv") == read(place / "out" / "report.csv"));
  if (std::filesystem::exists((place / "out") / "report.html")) CHECK(has(read((place / "out") / "report.html"), "\"command\":\"validate\""));
  else MESSAGE("skipped: this build has no report page");
  CHECK(Json::parse(read((place / "out") / "report.json"))["schema"] == "stepcast.validation/1");
  CHECK(place.run("validate runs.csv --out out").code == 0);  // replaces its own report
  CHECK(place.run("validate runs.csv --csv rows.csv").code == 0);
  CHECK(place.run("validate runs.csv --csv runs.csv").code == 2);  // the table itself
  CHECK(read(place / "runs.csv") == kTable);
}

TEST_CASE("an interval for each row, and the machine's factors fitted to some rows") {
  const Place place;
  std::string table = kTable.substr(0, kTable.find('\n') + 1);
  for (const char* id : {"a", "b", "c", "d"})
    table += std::string(id) + ",lab,small,a100-80gb,8,FULL_SHARD,2,bf16,none,50000,1024,4,8,4096,swiglu,32000,1024,fsdp1,A,fair\n";
  place.file("runs.csv", table);
  const Json interval = Json::parse(place.run("validate runs.csv --interval 10 --json").out);
  CHECK(interval["rows"][0]["interval"]["p10"].get<double>() < interval["rows"][0]["interval"]["p90"].get<double>());
  CHECK(interval["summary"].contains("coverage"));
  const Json fitted = Json::parse(place.run("validate runs.csv --calibrate-rows 2 --seed 3 --json").out)["calibrated"];
  REQUIRE(fitted["by_source"]["lab"]["fitted_rows"].size() == 2);
  CHECK(fitted["after"]["count"] == 2);
  CHECK(fitted["after"]["mean"].get<double>() < fitted["before"]["mean"].get<double>());  // all rows are one run
  CHECK(has(place.run("validate runs.csv --split 1").out, "calibrated on own rows"));
  CHECK(place.run("validate runs.csv --split 1 --calibrate-rows 2").code == 2);
  const Json halves = Json::parse(place.run("validate runs.csv --halves 1,2 --json").out)["held_out"];
  CHECK(halves["folds"].size() == 2);
  CHECK(halves["after"]["count"] == 4);
  CHECK(has(place.run("validate runs.csv --leave-source-out").err, "no rows are left to fit"));  // there is one source
  CHECK(place.run("validate runs.csv --leave-source-out --halves 1").code == 2);
}

TEST_CASE("refused tables are exit code 2 and one line") {
  const Place place;
  place.file("bad.csv", "id,source\n\"open");
  place.file("cell.csv", "id,source,model,gpu,n_gpus,sharding,micro_batch,precision,act_ckpt,mfu\na,b,c,d,x,f,1,bf16,none,0.4\n");
  place.file("runs.csv", kTable);
  for (const char* arguments :
       {"validate", "validate no-such.csv", "validate bad.csv", "validate cell.csv", "validate runs.csv --tier Z", "validate runs.csv --threads 0",
        "validate runs.csv --seed 1", "validate runs.csv --interval 1", "validate runs.csv --csv no/such/folder.csv"}) {
    const Outcome r = place.run(arguments);
    CHECK_MESSAGE(r.code == 2, arguments);
    CHECK_MESSAGE(has(r.err, "stepcast: "), arguments);
    CHECK_MESSAGE(r.out.empty(), arguments);
  }
  CHECK(has(place.run("validate cell.csv").err, "line 2, column n_gpus: \"x\" is not a number"));
}
