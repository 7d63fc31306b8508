// Machine factors are recovered from runs of a planted machine; what the runs do not determine stays at its prior and says so; fitted rows are not judged.
#include "cli/validate/recalibrate.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "calibration/runs.hpp"
#include "cli/report/validate.hpp"

using namespace stepcast;
using cli::MachineFactors;

namespace {

/// Rows of two machines in turn, bound by products and by the network: shares of a step that scale with each factor.
std::vector<double> errors_of(const MachineFactors& f, const MachineFactors& truth, bool networked) {
  std::vector<double> errors;
  for (int i = 0; i < 8; ++i) {
    const double network = networked ? 0.1 * i : 0;
    const auto time = [&](const MachineFactors& m) { return (1 - network) / m.clock + network / m.network; };
    errors.push_back(time(truth) / time(f) - 1);
  }
  return errors;
}

constexpr const char* kColumns =
    "id,source,model,d_model,n_layers,n_heads,ffn_dim,ffn_kind,vocab,seq_len,gpu,n_gpus,sharding,framework,micro_batch,grad_accum,precision,act_ckpt,attention,"
    "tokens_per_s_per_gpu\n";

calibration::RunTable six_rows() {
  std::string text = kColumns;
  for (int i = 1; i <= 6; ++i) {
    text += "r" + std::to_string(i) + ",somewhere,m,1024,4,8,4096,gelu,32000,1024,a100-80gb,8,FULL_SHARD,fsdp1," + std::to_string(i) +
            ",1,bf16,none,flash v2," + std::to_string(90000 + 1000 * i) + "\n";
  }
  return calibration::read_runs(text, "t.csv");
}

TEST_CASE("planted factors are recovered; those without an effect stay and count as not determined") {
  const MachineFactors truth{.clock = 0.93, .network = 0.7, .latency = 1, .host = 1};
  const auto fitted = cli::fit_factors([&](const MachineFactors& f) { return errors_of(f, truth, true); });
  CHECK(fitted[0].value == doctest::Approx(0.93).epsilon(0.02));
  CHECK(fitted[1].value == doctest::Approx(0.7).epsilon(0.05));
  CHECK(fitted[0].variance_left < 0.1);
  CHECK(fitted[1].variance_left < 0.1);
  for (const std::size_t p : {std::size_t{2}, std::size_t{3}}) {
    CHECK(fitted[p].value == doctest::Approx(1));
    CHECK(fitted[p].variance_left == doctest::Approx(1));
  }
  const auto alone = cli::fit_factors([&](const MachineFactors& f) { return errors_of(f, truth, false); });
  CHECK(alone[0].value == doctest::Approx(0.93).epsilon(0.02));
  CHECK(alone[1].variance_left == doctest::Approx(1));
}

TEST_CASE("rows are fitted or judged, by the seed; half of them where no number is given") {
  const calibration::RunTable runs = six_rows();
  const calibration::Sources sources;
  const cli::Judgement judgement = cli::judge(runs.runs, sources, 1);
  const cli::Recalibration three = cli::recalibrate(runs.runs, judgement, sources, {3, 1}, 1);
  REQUIRE(three.sources.size() == 1);
  CHECK(three.sources[0].fitted.size() == 3);
  CHECK(three.rows.size() == 3);
  for (const cli::JudgedRow& row : three.rows) CHECK(std::count(three.sources[0].fitted.begin(), three.sources[0].fitted.end(), row.id) == 0);
  CHECK(three.sources[0].before.count == 3);
  CHECK(cli::recalibrate(runs.runs, judgement, sources, {0, 1}, 1).sources[0].fitted == three.sources[0].fitted);
  CHECK(cli::recalibrate(runs.runs, judgement, sources, {5, 1}, 1).too_few == std::vector<std::string>{three.sources[0].source});
  bool other = false;
  for (std::uint64_t seed = 2; seed < 6; ++seed)
    other = other || cli::recalibrate(runs.runs, judgement, sources, {3, seed}, 1).sources[0].fitted != three.sources[0].fitted;
  CHECK(other);
  CHECK(cli::to_text(three).find("calibrated on own rows") != std::string::npos);
}

}  // namespace
