// One row's comparison: measured values by their origin, MFU by convention, memory, accumulation. cli/validate/judge.hpp.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/report/validate.hpp"
#include "cli/validate/measured.hpp"
#include "program/model.hpp"
#include "tests/support/forecast.hpp"

using namespace stepcast;
using calibration::Sources;
using cli::JudgedRow, cli::Judgement;

namespace {

const std::string kHeader =
    "id,source,model,gpu,n_gpus,sharding,micro_batch,precision,act_ckpt,tokens_per_s_per_gpu,step_time_s,mfu,peak_mem_gib,mem_kind,d_model,n_layers,n_heads,"
    "ffn_dim,ffn_kind,"
    "vocab,seq_len,framework,tier,note\n";

JudgedRow judged(const std::string& measured, const std::string& micro_batch = "2", const std::string& note = "") {
  const std::string row =
      "r,somewhere,m,a100-80gb,8,FULL_SHARD," + micro_batch + ",bf16,none," + measured + ",1024,4,8,4096,swiglu,32000,1024,fsdp1,A," + note + "\n";
  return cli::judge_row(calibration::read_runs(kHeader + row, "t.csv").runs.at(0), Sources());
}

}  // namespace

TEST_CASE("tokens/s as stated, from the step time, or from the MFU; errors are forecast / measured - 1") {
  const JudgedRow stated = judged("50000,,0.2,,");
  REQUIRE(stated.skipped.empty());
  CHECK(stated.measured.from == "stated");
  CHECK(*stated.error == doctest::Approx(stated.forecast.tokens_per_s_per_gpu / 50000 - 1));
  CHECK(*stated.mfu_error == doctest::Approx(stated.forecast.mfu / 0.2 - 1));
  const JudgedRow timed = judged(",0.05,,,");
  CHECK(timed.measured.from == "step time");
  CHECK(*timed.measured.tokens_per_s_per_gpu == doctest::Approx(2 * 1024 / 0.05));
  const JudgedRow used = judged(",,0.2,,");
  CHECK(used.measured.from == "MFU");
  CHECK(*used.error == doctest::Approx(*used.mfu_error));
}

TEST_CASE("MFU without a convention: 6 P + 12 L d T of the weights in products, over 312 TFLOP/s") {
  const JudgedRow row = judged("50000,,0.2,,");
  const double blocks = 4 * (4.0 * 1024 * 1024 + 3.0 * 1024 * 4096), head = 32000.0 * 1024;
  const double per_token = 6 * (blocks + head) + 12.0 * 4 * 1024 * 1024;
  CHECK(row.forecast.mfu == doctest::Approx(per_token * row.forecast.tokens_per_s_per_gpu / 312e12));
}

TEST_CASE("memory is compared with the peak that its words name") {
  const JudgedRow allocated = judged("50000,,,10,torch peak allocated; nvidia-smi 12000 MiB");
  CHECK(*allocated.memory_error == doctest::Approx(static_cast<double>(allocated.forecast.peak_allocated_bytes) / (10 * 1073741824.0) - 1));
  const JudgedRow reserved = judged("50000,,,10,torch max reserved (as logged)");
  CHECK(*reserved.memory_error == doctest::Approx(static_cast<double>(reserved.forecast.peak_reserved_bytes) / (10 * 1073741824.0) - 1));
  CHECK(!judged("50000,,,10,something else").memory_error);
}

TEST_CASE("a run that ran but does not fit by the forecast keeps both facts: its outcome, and its time with unlimited memory") {
  const JudgedRow row = judged("50000,,,,", "4000");
  CHECK(row.forecast.outcome == "out_of_memory");
  CHECK(row.measured.outcome == "ok");
  CHECK(row.forecast.tokens_per_s_per_gpu > 0);
  CHECK(row.error);
  const JudgedRow both = judged(",,,,", "4000", "out of memory as far as the log shows");
  CHECK(both.measured.outcome == "out_of_memory");
  CHECK(both.forecast.outcome == "out_of_memory");
  CHECK(!both.error);
}

TEST_CASE("a step of many micro-batches is that of a few and what each further one adds") {
  const std::vector<std::string> sets = {"/model/layers=4", "/batch/seq_len=512", "/batch/micro_batch=1", "/batch/grad_accum=60"};
  const auto scenario = scenarios::read_scenario("7b-32xa100", sets);
  const cli::StepForecast short_cut = cli::StepForecaster(scenario).on(cli::hardware_of(scenario));
  CHECK(short_cut.extended);
  const auto whole = cli::predict(scenario).report;
  CHECK(short_cut.report.step_time_s == doctest::Approx(whole.step_time_s).epsilon(1e-3));
  CHECK(short_cut.report.tokens_per_s_per_gpu == doctest::Approx(whole.tokens_per_s_per_gpu).epsilon(1e-3));
  CHECK(short_cut.report.mfu == doctest::Approx(whole.mfu).epsilon(1e-3));
  CHECK(short_cut.report.peak_allocated_bytes == whole.peak_allocated_bytes);
}

TEST_CASE("summaries by source, tier and GPU; skipped rows are listed apart") {
  std::vector<JudgedRow> rows(4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].id = "r" + std::to_string(i);
    rows[i].group = i < 2 ? "one" : "two";
    rows[i].tier = "A";
    rows[i].gpu = i % 2 == 0 ? "a100-80gb" : "H100";
    rows[i].measured.tokens_per_s_per_gpu = 100;
    rows[i].forecast.outcome = "ok";
    rows[i].forecast.tokens_per_s_per_gpu = 110;
    rows[i].error = 0.1 * static_cast<double>(i);
  }
  rows[3].skipped = "no shape, <b>";
  const Judgement j = cli::summarize(rows);
  const auto json = cli::to_json(j);
  CHECK(json["summary"]["count"] == 3);
  CHECK(json["summary"]["mean"].get<double>() == doctest::Approx(0.1));
  CHECK(json["by_source"]["one"]["count"] == 2);
  CHECK(json["by_gpu"]["a100"]["max"].get<double>() == doctest::Approx(0.2));
  CHECK(json["rows"].size() == 3);
  CHECK(json["skipped"][0]["reason"] == "no shape, <b>");
  CHECK(cli::to_text(j).find("no shape") != std::string::npos);
  CHECK(cli::to_csv(j).find("\"no shape, <b>\"") != std::string::npos);
}
