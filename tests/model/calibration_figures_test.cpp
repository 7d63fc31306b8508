// What a calibration reaches on public microbenchmarks that lie beside the source tree (skipped where they are absent): fitted on one half of the operations, judged on
// the other. The bounds are those of docs/calibration.md, "Reached"; the values are printed with --success.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "calibration/describe.hpp"
#include "calibration/errors.hpp"
#include "calibration/fit.hpp"
#include "calibration/predictor.hpp"
#include "calibration/read_measurements.hpp"
#include "hw_models/profiles.hpp"
#include "support/paths.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

namespace {

std::vector<Measurement> rows_of(const std::string& name, const std::string& gpu, const Machine& machine) {
  const std::string path = test::source_dir() + "/../shared/micro/" + name;
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: ", name, " is not beside the source tree");
    return {};
  }
  std::vector<Measurement> rows;
  for (const Measurement& row : read_measurements(path).rows) {
    const Measurement one = placed(row, machine);
    if ((gpu.empty() || one.gpu == gpu) && obstacle(one, machine).empty()) rows.push_back(one);
  }
  REQUIRE(rows.size() > 10);
  return rows;
}

/// Median error by group of the held-out rows of at least some size, over fits of several splits: a half of a few rows alone is a matter of luck.
std::map<std::string, double> held_out_medians(const Machine& machine, const std::vector<Measurement>& rows, int splits, double from_size) {
  std::map<std::string, std::vector<double>> errors;
  for (int seed = 1; seed <= splits; ++seed) {
    const Fit result = fit(machine, rows, {.seed = static_cast<std::uint64_t>(seed), .starts = splits > 1 ? 3 : 1, .hold_out = 0.5});
    const Eigen::VectorXd logs = log_errors(result.machine, result.held_out);
    for (std::size_t i = 0; i < result.held_out.size(); ++i) {
      if (size_of(*result.held_out[i]) >= from_size) errors[group_of(*result.held_out[i])].push_back(std::expm1(logs[static_cast<Eigen::Index>(i)]));
    }
  }
  std::map<std::string, double> medians;
  for (const auto& [group, values] : errors) {
    const ErrorSummary summary = summarize(values);
    medians[group] = summary.median;
    MESSAGE(group, ": ", summary.count, " held-out rows, median ", 100 * summary.median, " %, p90 ", 100 * summary.p90, " %, bias ", 100 * summary.bias, " %");
  }
  return medians;
}

Machine gpu_machine(const char* gpu) { return {hw::gpu_profile(gpu), std::nullopt, Seconds(20e-6)}; }

}  // namespace

TEST_CASE("GEMM on two A100s, each fitted by itself") {
  for (const auto& [profile, gpu] : {std::pair("a100-sxm4-40gb", "A100-SXM4-40GB"), std::pair("a100-sxm4-80gb", "A100-SXM4-80GB")}) {
    const Machine machine = gpu_machine(profile);
    const std::vector<Measurement> rows = rows_of("gemm.csv", gpu, machine);
    if (rows.empty()) return;
    CHECK(held_out_medians(machine, rows, 1, 0).at("GEMM") < 0.06);
  }
}

TEST_CASE("Attention on an A100 from the plots of flash-attention") {
  const Machine machine = gpu_machine("a100-sxm4-80gb");
  const std::vector<Measurement> rows = rows_of("attention.csv", "A100-SXM4-80GB", machine);
  if (rows.empty()) return;
  const auto medians = held_out_medians(machine, rows, 8, 0);
  for (const char* kernel : {"attention flash1", "attention flash2", "attention efficient"}) CHECK_MESSAGE(medians.at(kernel) < 0.04, kernel);
  CHECK(medians.at("attention triton") < 0.12);  // causal 0.8 of unmasked at every length: the formula has no such constant
}

TEST_CASE("Collectives of one 8 x A100 node, messages of 1 MB and more") {
  const Machine machine{std::nullopt, hw::node_profile("dgx-a100"), Seconds(20e-6)};
  std::vector<Measurement> rows;
  for (const char* log : {"all_gather", "reduce_scatter", "all_reduce"}) {
    for (Measurement& row : rows_of(std::string("raw/nccl/sb_a100-40_1x8_") + log + ".txt", "", machine)) rows.push_back(std::move(row));
  }
  if (rows.empty()) return;
  for (const auto& [group, median] : held_out_medians(machine, rows, 8, 1e6)) CHECK_MESSAGE(median < 0.08, group);
}
