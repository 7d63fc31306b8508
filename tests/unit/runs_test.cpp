// Tables of runs: columns by name, typed cells, inferred values where a cell is blank. calibration/runs.hpp.
#include "calibration/runs.hpp"

#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "support/text.hpp"

using namespace stepcast;
using calibration::Given, calibration::read_runs, calibration::Run, calibration::RunTable;

namespace {

const std::string kHeader = "id,source,model,gpu,n_gpus,sharding,micro_batch,precision,act_ckpt,tokens_per_s_per_gpu,inferred,vocab,attention,colour\n";

std::string refusal_of_runs(const std::string& text) {
  try {
    static_cast<void>(read_runs(text, "t.csv"));
  } catch (const InputError& error) { return error.what(); }
  return "accepted";
}

using stepcast::test::has;

}  // namespace

TEST_CASE("cells by column; inferred values fill blanks only; the rest is noted or prose") {
  const RunTable table =
      read_runs(kHeader +
                    "a,src,m,a100,8,FULL_SHARD,,bf16,full,100.5,"
                    "\"micro_batch=4 (from the config; 8 elsewhere); vocab=about 50K; gpu=h100; attention=triton (default); said in passing\",,,red\n",
                "t.csv");
  REQUIRE(table.runs.size() == 1);
  const Run& run = table.runs[0];
  CHECK(run.count("n_gpus") == 8);
  CHECK(run.number("tokens_per_s_per_gpu") == 100.5);
  REQUIRE(run.find("micro_batch"));
  CHECK(run.find("micro_batch")->number == 4);
  CHECK(run.find("micro_batch")->given == Given::inferred);
  CHECK(run.text("gpu") == "a100");
  CHECK(run.text("attention") == "triton");
  CHECK(!run.find("vocab"));
  REQUIRE(run.notes.size() == 1);
  CHECK(has(run.notes[0], "vocab=about 50K"));
  CHECK(table.ignored == std::vector<std::string>{"colour"});
}

TEST_CASE("what is refused, with line and column") {
  const std::string row = "src,m,a100,8,F,1,bf16,full,1,,,,\n";
  CHECK(has(refusal_of_runs(kHeader + "a,src,m,a100,eight,F,1,bf16,full,1,,,,\n"), "t.csv: line 2, column n_gpus: \"eight\" is not a number"));
  CHECK(has(refusal_of_runs(kHeader + "a,src,m,a100,1.5,F,1,bf16,full,1,,,,\n"), "column n_gpus: \"1.5\" is not a whole number"));
  CHECK(has(refusal_of_runs(kHeader + "a,src,m,a100,2000001,F,1,bf16,full,1,,,,\n"), "column n_gpus: \"2000001\" is more than 2 million"));
  CHECK(has(refusal_of_runs(kHeader + "a,src,m,a100,8,F,0,bf16,full,1,,,,\n"), "column micro_batch: \"0\" is not a number above zero"));
  CHECK(has(refusal_of_runs(kHeader + "a,src,m,a100,8,F,1,bf16,full,nan,,,,\n"), "column tokens_per_s_per_gpu"));
  CHECK(has(refusal_of_runs(kHeader + "a," + row + "a," + row), "line 3, column id: \"a\" stands in line 2 already"));
  CHECK(has(refusal_of_runs(kHeader + "," + row), "line 2, column id: is blank"));
  CHECK(has(refusal_of_runs("id,source,model,gpu,gpus,sharding,micro_batch,precision,act_ckpt,mfu\n"), "column \"n_gpus\" is missing; is \"gpus\" meant?"));
  CHECK(has(refusal_of_runs("id,source,model,gpu,n_gpus,sharding,micro_batch,precision,act_ckpt\n"), "no column holds a measurement"));
}
