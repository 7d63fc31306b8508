// Kernels of a step against the device's roof: FLOPs per byte, what they attain, what they could, and how the micro-batch moves them. docs/questions.md, "Roofline";
// test: tests/unit/roofline_test.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/predict.hpp"

namespace stepcast::cli {

/// All kernels of one class in a step, each alone on the device.
struct RooflineRow {
  std::string kernels;
  std::int64_t count = 0;
  double flops = 0, bytes = 0, time_s = 0;
  double peak = 0;       // FLOP/s for their operands; 0 for kernels that only move data
  double bandwidth = 0;  // of DRAM, bytes/s

  [[nodiscard]] double intensity() const { return flops / bytes; }
  /// Where the device's two rates meet, in FLOP per byte: below it DRAM bounds, above it the multipliers do.
  [[nodiscard]] double ridge() const { return peak / bandwidth; }
  [[nodiscard]] bool compute_bound() const { return flops > 0 && intensity() >= ridge(); }
  /// Share of the roof min(peak, intensity x bandwidth) that is attained; the same as the time at the roof over the time.
  [[nodiscard]] double attained() const { return (compute_bound() ? flops / peak : bytes / bandwidth) / time_s; }
};

/// Rows of products and attention with another micro-batch.
struct RooflineBatch {
  std::int64_t micro_batch = 1;
  std::vector<RooflineRow> rows;
};

struct Roofline {
  std::vector<RooflineRow> rows;       // per step and GPU, by falling time
  std::vector<RooflineBatch> batches;  // half as large where it is even, twice, four times; whether they fit is not asked
};

/// Throws InputError for fixed costs, which have no device.
Roofline roofline(const scenarios::Scenario& scenario);

nlohmann::ordered_json to_json(const Roofline& roofline);
std::string to_text(const Roofline& roofline);

}  // namespace stepcast::cli
