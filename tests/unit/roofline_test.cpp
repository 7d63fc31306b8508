// The roofline's FLOPs against sums by hand, its roof against the definition, its micro-batches against scenarios of their own. docs/questions.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/run/roofline.hpp"
#include "hw_models/input_error.hpp"
#include "scenarios/scenario.hpp"

using namespace stepcast;

namespace {

scenarios::Scenario small(std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(), {"/run/steps=3", "/model/layers=2"});
  return scenarios::read_scenario("7b-32xa100", sets);
}

const cli::RooflineRow& row(const std::vector<cli::RooflineRow>& rows, const std::string& kernels) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.kernels == kernels; });
  REQUIRE_MESSAGE(found != rows.end(), kernels);
  return *found;
}

}  // namespace

TEST_CASE("FLOPs by hand: three products for each weight and token, attention over half of the pairs") {
  const scenarios::Scenario scenario = small();
  const std::vector<cli::RooflineRow> rows = cli::roofline(scenario).rows;
  const auto s = static_cast<double>(scenario.batch.seq_len), sequences = static_cast<double>(scenario.batch.micro_batch);
  const double weights = 2 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) + 4096.0 * 32000;
  CHECK(row(rows, "products, bf16").flops == doctest::Approx(6 * weights * sequences * s));
  CHECK(row(rows, "attention forward, bf16").flops == doctest::Approx(2 * 4 * sequences * 32 * s * s * 128 / 2));
  CHECK(row(rows, "attention backward, bf16").flops == doctest::Approx(2.5 * row(rows, "attention forward, bf16").flops));
  CHECK(row(rows, "elementwise").flops == 0);
  CHECK(std::is_sorted(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.time_s > b.time_s; }));
}

TEST_CASE("the roof by hand, on either side of the ridge") {
  const cli::RooflineRow high{"", 1, 600, 2, 4, 200, 10}, low{"", 1, 100, 50, 10, 200, 10}, moving{"", 1, 0, 50, 10, 0, 10};
  CHECK(high.ridge() == 20);
  CHECK(high.compute_bound());  // 300 FLOP/byte; 3 of 4 seconds
  CHECK(high.attained() == doctest::Approx(0.75));
  CHECK_FALSE(low.compute_bound());  // 2 FLOP/byte: the roof is 20 FLOP/s, 10 are attained
  CHECK(low.attained() == doctest::Approx(0.5));
  CHECK_FALSE(moving.compute_bound());
  CHECK(moving.attained() == doctest::Approx(0.5));
}

TEST_CASE("another micro-batch is what its own scenario says; weights are read once for more tokens") {
  const cli::Roofline roofline = cli::roofline(small());
  REQUIRE(roofline.batches.size() == 4);  // 1, 2, 4, 8
  for (const cli::RooflineBatch& batch : roofline.batches) {
    const auto own = cli::roofline(small({"/batch/micro_batch=" + std::to_string(batch.micro_batch)})).rows;
    for (const cli::RooflineRow& r : batch.rows) CHECK(r.time_s == row(own, r.kernels).time_s);
  }
  const auto intensity = [&](std::size_t i) { return row(roofline.batches[i].rows, "products, bf16").intensity(); };
  CHECK(intensity(0) < intensity(1));
  CHECK(intensity(1) < intensity(3));
  CHECK(cli::roofline(small({"/batch/micro_batch=3"})).batches.size() == 3);                            // no half of 3
  CHECK(cli::roofline(small({"/batch/seq_len=512", "/batch/micro_batch=16384"})).batches.size() == 3);  // four times are more tokens than a scenario may have
}

TEST_CASE("unfused attention has batched products; no attained share is above the roof") {
  const auto rows = cli::roofline(small({"/kernels/attention=unfused"})).rows;
  CHECK(row(rows, "batched products, bf16").flops > 0);
  for (const cli::RooflineRow& r : rows) CHECK_MESSAGE(r.attained() <= 1, r.kernels);
}

TEST_CASE("as JSON and text; fixed costs have no roof") {
  const cli::Roofline roofline = cli::roofline(small());
  const auto json = cli::to_json(roofline);
  CHECK(json["kernels"][0]["kernels"] == "products, bf16");
  CHECK(json["kernels"][0]["attained"].get<double>() ==
        doctest::Approx(json["kernels"][0]["flops_per_s"].get<double>() / json["kernels"][0]["peak_flops_per_s"].get<double>()));
  CHECK(json["micro_batches"].size() == 4);
  CHECK(cli::to_text(roofline).find("FLOP/byte") != std::string::npos);
  scenarios::Scenario fixed = small();
  fixed.fixed_costs.emplace();
  CHECK_THROWS_AS(cli::roofline(fixed), InputError);
}
