// Rows held out of a fit: folds divide the table, and a machine that all sources share is found from the others' rows.
#include "cli/validate/hold_out.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "calibration/runs.hpp"
#include "cli/report/validate.hpp"

using namespace stepcast;

namespace {

constexpr const char* kHeldOutHeader =
    "id,source,model,d_model,n_layers,n_heads,ffn_dim,ffn_kind,vocab,seq_len,gpu,n_gpus,sharding,framework,micro_batch,grad_accum,precision,act_ckpt,attention,"
    "tokens_per_s_per_gpu\n";

/// Rows of two sources, bound by products; the speeds are those of `speeds`, row by row, or any.
calibration::RunTable table(const std::vector<double>& speeds = {}) {
  std::string text = kHeldOutHeader;
  for (std::size_t i = 0; i < 8; ++i) {
    text += fmt::format("r{},{},m,2048,4,16,8192,gelu,32000,2048,a100-80gb,8,FULL_SHARD,fsdp1,{},1,bf16,none,flash v2,{}\n", i, i < 5 ? "north" : "south",
                        4 + i, speeds.empty() ? 50000 : speeds[i]);
  }
  return calibration::read_runs(text, "t.csv");
}

/// Rows of a machine that is `factor` times as fast as forecast.
calibration::RunTable faster_by(double factor) {
  const calibration::RunTable any = table();
  std::vector<double> speeds;
  for (const cli::JudgedRow& row : cli::judge(any.runs, {}, 1).rows) speeds.push_back(factor * row.forecast.tokens_per_s_per_gpu);
  return table(speeds);
}

TEST_CASE("folds: each source once, with all other rows to fit; halves by the seed, disjoint and together the table") {
  const calibration::RunTable runs = table();
  const cli::Judgement judgement = cli::judge(runs.runs, {}, 1);
  const auto folds = cli::folds_by_source(judgement);
  REQUIRE(folds.size() == 2);
  CHECK(folds[0].judged.size() + folds[1].judged.size() == 8);
  CHECK(folds[0].judged == folds[1].fitted);
  CHECK(folds[1].judged == folds[0].fitted);
  const cli::Fold one = cli::half(judgement, 1);
  CHECK(one.fitted.size() == 4);
  std::vector<std::size_t> all = one.fitted;
  all.insert(all.end(), one.judged.begin(), one.judged.end());
  std::sort(all.begin(), all.end());
  CHECK(all == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(cli::half(judgement, 1).fitted == one.fitted);
  bool other = false;
  for (std::uint64_t seed = 2; seed < 6; ++seed) other = other || cli::half(judgement, seed).fitted != one.fitted;
  CHECK(other);
}

TEST_CASE("what all sources' machines share is found from the others' rows") {
  const calibration::RunTable runs = faster_by(1.06);
  const calibration::Sources sources;
  const cli::Judgement judgement = cli::judge(runs.runs, sources, 1);
  const cli::HoldOut held = cli::hold_out(runs.runs, judgement, sources, cli::folds_by_source(judgement), 2);
  REQUIRE(held.folds.size() == 2);
  for (const cli::HeldOut& h : held.folds) {
    CHECK(h.before.mean == doctest::Approx(1 - 1 / 1.06));
    CHECK(h.after.mean < 0.3 * h.before.mean);
    CHECK(h.factors[0].value > 1.04);
    CHECK(h.factors[1].variance_left > 0.9);  // one node: no network
  }
  CHECK(held.after.count == 8);
  CHECK(cli::to_json(held)["folds"].size() == 2);
  CHECK(cli::to_text(held).find("fitted to the others") != std::string::npos);
}

}  // namespace
