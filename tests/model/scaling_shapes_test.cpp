// How runs of one model scale with the number of GPUs: the order of all that differ by more than repeated runs do, and the knee of full sharding that hybrid sharding doesn't have.
// Modalities' published runs on Leonardo (4 GPUs a node), where their table lies beside the tree.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "calibration/runs.hpp"
#include "cli/validate/judge.hpp"
#include "support/paths.hpp"

using namespace stepcast;

namespace {

/// Judged rows of Modalities on Leonardo by id.
std::map<std::string, cli::JudgedRow> leonardo() {
  const std::string path = test::source_dir() + "/../shared/measured/fsdp_runs_dev.csv";
  std::map<std::string, cli::JudgedRow> result;
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: the table of published runs is not there: " << path);
    return result;
  }
  const calibration::Sources sources;
  for (const calibration::Run& run : calibration::read_runs_file(path).runs) {
    if (sources.of(run).name == "Modalities Leonardo") result.emplace(run.id, cli::judge_row(run, sources));
  }
  return result;
}

double measured(const cli::JudgedRow& row) { return *row.measured.tokens_per_s_per_gpu; }
double forecast(const cli::JudgedRow& row) { return row.forecast.tokens_per_s_per_gpu; }

constexpr double kClear = 0.1;  // share by which two runs of one model must differ to have an order

}  // namespace

TEST_CASE("the order of all runs of one model on Leonardo, over GPUs, strategies and micro-batches") {
  int pairs = 0;
  const auto rows = leonardo();
  for (const auto& [id_a, a] : rows) {
    for (const auto& [id_b, b] : rows) {
      if (a.model != b.model || !a.error || !b.error || measured(a) < (1 + kClear) * measured(b)) continue;
      ++pairs;
      CHECK_MESSAGE(forecast(a) > forecast(b), id_a << " is faster than " << id_b);
    }
  }
  CHECK((rows.empty() || pairs > 100));
}

TEST_CASE("the knee of 2.7B: full sharding loses half its speed from 32 to 128 GPUs, hybrid sharding little, a larger micro-batch nothing") {
  const auto rows = leonardo();
  if (rows.empty()) return;
  const auto kept = [&](const char* few, const char* many, auto of) { return of(rows.at(many)) / of(rows.at(few)); };
  for (const auto of : {measured, forecast}) {
    CHECK(kept("modalities-002", "modalities-012", of) > 0.9);  // FULL_SHARD, micro-batch 1, 8 to 32 GPUs
    CHECK(kept("modalities-012", "modalities-022", of) < 0.6);  // 32 to 128
    CHECK(kept("modalities-011", "modalities-021", of) > 0.8);  // HYBRID_SHARD, 32 to 128
    CHECK(kept("modalities-015", "modalities-025", of) > 0.9);  // FULL_SHARD, micro-batch 4, 32 to 128
  }
}
