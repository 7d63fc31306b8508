// The fit on measurements that were made by the formulas themselves, with constants that the fit does not know: it must find them, say how well, and say which ones
// the rows leave open. docs/calibration.md.
#include <doctest/doctest.h>

#include <cmath>

#include "calibration/advice.hpp"
#include "calibration/describe.hpp"
#include "calibration/draws.hpp"
#include "calibration/fit.hpp"
#include "calibration/predictor.hpp"
#include "calibration/residuals.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

namespace {

Machine base() { return {hw::gpu_profile("a100-sxm4-80gb"), hw::node_profile("dgx-a100"), Seconds(20e-6)}; }

void plant(hw::Profile& profile, const std::string& name, double factor) { profile.constants.at(name).value *= factor; }

/// A machine that is not the base: constants moved by 8 to 60 %.
Machine planted() {
  Machine machine = base();
  plant(*machine.gpu, "gemm_efficiency", 1.08);
  plant(*machine.gpu, "gemm_half_depth", 1.5);
  plant(*machine.gpu, "gemm_fixed_time", 1.3);
  plant(*machine.gpu, "attention_flash2_rate_128", 0.8);
  plant(*machine.gpu, "attention_flash2_half_length", 1.6);
  plant(*machine.gpu, "efficiency_softmax", 0.85);
  return machine;
}

Measurement product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Measurement row;
  row.kernel = {.kind = hw::KernelKind::gemm, .m = m, .n = n, .k = k};
  return row;
}

Measurement attention(std::int64_t length, std::int64_t head, bool causal) {
  Measurement row;
  row.kernel.kind = hw::KernelKind::attention_forward;
  row.kernel.attention = hw::AttentionKernel::flash2;
  row.kernel.batch = 16384 / length;
  row.kernel.m = length;
  row.kernel.n = 32;
  row.kernel.k = head;
  row.kernel.causal = causal;
  row.both_passes = true;
  return row;
}

Measurement softmax(std::int64_t bytes) {
  Measurement row;
  row.kernel.memory = hw::MemoryClass::softmax;
  row.kernel.read_bytes = bytes;
  return row;
}

Measurement reduction(std::int64_t bytes, std::int32_t nodes) {
  Measurement row;
  row.timed = Timed::collective;
  row.collective.kind = hw::CollectiveKind::all_reduce;
  row.collective.bytes = bytes;
  row.collective.group = {8, nodes};
  return row;
}

std::vector<Measurement> shapes() {
  std::vector<Measurement> rows;
  for (const std::int64_t m : {1024, 2048, 4096, 8192}) {
    for (const std::int64_t n : {1024, 2560, 5120, 12288}) {
      for (const std::int64_t k : {512, 1024, 4096, 16384}) rows.push_back(product(m, n, k));
    }
  }
  for (const std::int64_t length : {512, 1024, 2048, 4096, 16384}) {
    for (const std::int64_t head : {64, 128}) {
      for (const bool causal : {false, true}) rows.push_back(attention(length, head, causal));
    }
  }
  for (std::int64_t bytes = 100'000'000; bytes < 2'000'000'000; bytes += 100'000'000) rows.push_back(softmax(bytes));
  return rows;
}

/// Times of the machine, with noise of 2 %.
std::vector<Measurement> measured(std::vector<Measurement> rows, const Machine& machine, std::uint64_t seed) {
  Predictor predictor(machine);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].time = predictor.time(rows[i]) * std::exp(0.02 * normal(seed, "noise", i));
  return rows;
}

const FittedParameter& find(const Fit& fit, const std::string& name) {
  for (const FittedParameter& p : fit.parameters) {
    if (p.parameter.name == name) return p;
  }
  FAIL("no such parameter: ", name);
  return fit.parameters.front();
}

void check_recovered(const Fit& fit, const Machine& truth, double spreads) {
  for (const char* name :
       {"gemm_efficiency", "gemm_half_depth", "attention_flash2_rate_64", "attention_flash2_rate_128", "attention_flash2_half_length", "efficiency_softmax"}) {
    const FittedParameter& p = find(fit, name);
    CAPTURE(name);
    CAPTURE(p.value);
    CAPTURE(p.spread);
    CHECK(p.spread < 0.2);
    CHECK(p.undetermined < kUndetermined);
    CHECK(std::abs(std::log(p.value / truth.gpu->at(name))) < spreads * p.spread);
  }
}

}  // namespace

TEST_CASE("Planted constants are recovered within the stated spread from 2 % of noise and three starts") {
  const Machine truth = planted();
  int far = 0, checked = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    const std::vector<Measurement> rows = measured(shapes(), truth, seed);
    const Fit result = fit(base(), rows, {.seed = seed, .starts = 3, .hold_out = 0});
    CHECK(result.converged);
    check_recovered(result, truth, 3.5);
    for (const FittedParameter& p : result.parameters) {
      if (p.undetermined >= kUndetermined) continue;
      ++checked;
      CHECK(p.starts_agreed == 3);
      far += std::abs(std::log(p.value / truth.gpu->at(p.parameter.name))) > 2 * p.spread ? 1 : 0;
    }
    CHECK(result.noise.at("GEMM") == doctest::Approx(0.02).epsilon(0.3));
  }
  CHECK(checked >= 24);
  CHECK(far <= checked / 6);  // a spread means something: few lie outside two of them
}

TEST_CASE("Five outliers in a hundred do not matter") {
  const Machine truth = planted();
  std::vector<Measurement> rows = measured(shapes(), truth, 5);
  for (std::size_t i = 7; i < rows.size(); i += 20) rows[i].time = rows[i].time * (i % 40 == 7 ? 3.0 : 0.4);
  check_recovered(fit(base(), rows, {.starts = 3, .hold_out = 0}), truth, 4);
}

TEST_CASE("What the rows leave open is said: big messages alone do not determine latencies") {
  const Machine truth = base();
  std::vector<Measurement> shapes;
  for (std::int64_t bytes = std::int64_t{1} << 28; bytes <= std::int64_t{1} << 34; bytes *= 2) shapes.push_back(reduction(bytes, 1));
  const std::vector<Measurement> rows = measured(shapes, truth, 1);
  const Fit result = fit(base(), rows, {.starts = 3, .hold_out = 0});
  CHECK(find(result, "all_reduce_efficiency").undetermined < 0.1);
  CHECK(find(result, "bulk_start").undetermined > 0.9);
  for (const FittedParameter& p : result.parameters) CHECK(p.parameter.name != "small_network_rate");  // no row reaches it
  // and what would help is a small message, of the widest constant
  const auto advice = next_measurement(result);
  REQUIRE(advice);
  CHECK(advice->after < advice->spread);
  CHECK(advice->measurement.find("ranks") != std::string::npos);
}

TEST_CASE("Bandwidth and latency are told apart once small messages are there") {
  Machine truth = base();
  plant(*truth.node, "all_reduce_efficiency", 0.8);
  plant(*truth.node, "bulk_start", 2);
  std::vector<Measurement> shapes;
  for (std::int64_t bytes = 1024; bytes <= std::int64_t{1} << 34; bytes *= 2) {
    for (const std::int32_t nodes : {1, 2, 4}) shapes.push_back(reduction(bytes, nodes));
  }
  const std::vector<Measurement> rows = measured(shapes, truth, 1);
  const Fit result = fit(base(), rows, {.starts = 3, .hold_out = 0});
  const FittedParameter& rate = find(result, "all_reduce_efficiency");
  CHECK(std::abs(std::log(rate.value / truth.node->at("all_reduce_efficiency"))) < 4 * rate.spread);
  CHECK(rate.spread < 0.03);
}

TEST_CASE("Host clocks: what they add is one constant for all, and is found") {
  Machine truth = base();
  truth.host_clock = Seconds(33e-6);
  std::vector<Measurement> shapes;
  for (const std::int64_t m : {512, 1024, 2048, 4096, 8192}) {
    for (const std::int64_t n : {512, 1024, 2048, 4096}) shapes.push_back(product(m, n, 1024));
  }
  for (Measurement& row : shapes) row.host_timed = true;
  const Fit result = fit(base(), measured(shapes, truth, 3), {.starts = 2, .hold_out = 0});
  const FittedParameter& clock = find(result, "host_clock");
  CHECK(clock.parameter.owner == Owner::host_clock);
  // the kernel's own fixed time stands beside it in every row: only their sum is determined
  const double sum = clock.value + find(result, "gemm_fixed_time").value;
  CHECK(sum == doctest::Approx(38e-6).epsilon(0.06));
}

TEST_CASE("Holding out: the same operations for the same seed, equal operations together, and they are not fitted") {
  const Machine truth = planted();
  std::vector<Measurement> rows = measured(shapes(), truth, 1);
  const std::size_t once = rows.size();
  for (std::size_t i = 0; i < once; ++i) rows.push_back(rows[i]);
  const Fit result = fit(base(), rows, {.seed = 7, .starts = 1, .hold_out = 0.5});
  CHECK(result.fitted.size() + result.held_out.size() == rows.size());
  CHECK(result.held_out.size() > rows.size() / 3);
  for (const Measurement* out : result.held_out) {
    for (const Measurement* in : result.fitted) CHECK(describe(*out) != describe(*in));
  }
  const auto of_held_out = residuals(result.machine, result.held_out);
  REQUIRE(!of_held_out.empty());
  for (const ResidualGroup& group : of_held_out) {
    if (group.decade.empty() && group.errors.count >= 40) CHECK(group.errors.median < 0.025);
  }
}

TEST_CASE("Only constants that are not facts of the machine are fitted, and facts stay as they are") {
  const Machine machine = base();
  for (const Parameter& p : candidates(machine)) {
    CHECK(p.name.rfind("peak_", 0) != 0);
    CHECK(p.name != "nvlink_rate");
    CHECK(p.name != "gpus");
    CHECK(p.min < p.prior);
    CHECK(p.width > 0);
  }
}

TEST_CASE("Rows outside a formula's range are named, not used") {
  const Machine machine = base();
  const auto why = [&](Measurement row, double seconds) {
    row.time = Seconds(seconds);
    return obstacle(placed(row, machine), machine);
  };
  CHECK(why(product(4096, 4096, 4096), 1e-3).empty());
  CHECK(why(product(32, 4096, 4096), 1e-3) == "a product with a side below 64");
  CHECK(why(product(64, 64, 64), 5e-6) == "a product too short for the formula");
  CHECK(why(softmax(20'000'000), 1e-4) == "a tensor that the cache may hold");
  CHECK(why(attention(256, 64, false), 1e-4) == "attention on fewer than 512 tokens");
  Measurement flash3 = attention(2048, 64, false);
  flash3.kernel.attention = hw::AttentionKernel::flash3;
  CHECK(why(flash3, 1e-3).find("no figures for the attention kernel flash3") != std::string::npos);
  Measurement ranks = reduction(1 << 20, 1);
  ranks.collective.group = {0, 12};  // 12 ranks on nodes of 8
  CHECK(why(ranks, 1e-3) == "ranks that don't fill nodes of this profile");
  ranks.collective.group = {0, 16};
  CHECK(placed(ranks, machine).collective.group == hw::GroupShape{8, 2});
  ranks.collective.group = {0, 4};
  CHECK(placed(ranks, machine).collective.group == hw::GroupShape{4, 1});
  const Machine gpu_alone{machine.gpu, std::nullopt, Seconds(20e-6)};
  ranks.time = Seconds(1e-3);
  CHECK(obstacle(ranks, gpu_alone) == "no node profile to calibrate (--node)");
}

TEST_CASE("Nothing to fit is an error") { CHECK_THROWS_AS(fit(base(), {}, {}), InputError); }

TEST_CASE("Decades and descriptions") {
  CHECK(decade_of(softmax(20'000'000)) == "10-100 MB");
  CHECK(decade_of(softmax(100'000'000)) == "100-1000 MB");
  CHECK(decade_of(product(1000, 1000, 1000)) == "1-10 GFLOP");
  CHECK(describe(product(64, 128, 256)) == "GEMM bf16 64 x 128 x 256");
  CHECK(describe(reduction(1024, 2)) == "all_reduce of 1024 B, 2 x 8 ranks");
  CHECK(group_of(reduction(1024, 2)) == "all_reduce between nodes");
  CHECK(cell_of(product(1024, 1024, 1024)) == cell_of(product(1500, 1024, 1024)));
  CHECK(cell_of(product(1024, 1024, 1024)) != cell_of(product(4096, 1024, 1024)));
}

TEST_CASE("Draws depend on seed, purpose and index, and look uniform and normal") {
  CHECK(uniform(1, "a", 0) == uniform(1, "a", 0));
  CHECK(uniform(1, "a", 0) != uniform(2, "a", 0));
  CHECK(uniform(1, "a", 0) != uniform(1, "b", 0));
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const double x = normal(3, "test", i);
    sum += x;
    squares += x * x;
  }
  CHECK(sum / 4000 == doctest::Approx(0).epsilon(0.05));
  CHECK(squares / 4000 == doctest::Approx(1).epsilon(0.08));
}
