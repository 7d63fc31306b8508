// See gemm.hpp. Sources of the form: tile and wave counting as in NVIDIA's matrix multiplication guide; constants are data (hw_models/data).
#include "hw_models/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "hw_models/input_error.hpp"
#include "hw_models/rates.hpp"

namespace stepcast::hw {

namespace {

struct Tile {
  std::int64_t rows, columns;
  double cost;  // relative time per multiply-add
};
constexpr std::array kTiles{Tile{128, 256, 1.0}, Tile{256, 128, 1.0}, Tile{128, 128, 1.08}};
constexpr double kSplitCost = 0.03;  // per doubling of split-K
constexpr int kMaxSplitLog2 = 3;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Share of `gemm_efficiency` that products of 8-bit operands reach of their own peak.
double fp8_ratio(const Profile& gpu) {
  const auto found = gpu.constants.find("gemm_fp8_ratio");
  if (found == gpu.constants.end()) throw InputError("hardware", gpu.name, "has no gemm_fp8_ratio, which products in fp8 need", "add it to the profile");
  return found->second.value;
}

/// Of columns and depth the one that costs more: no figures have both off.
double alignment_ratio(const KernelShape& shape, const GemmRates& rates) {
  const auto ratio = [&](std::int64_t size, double even) {
    if (size % 2 != 0) return rates.odd_ratio;
    if (size % 8 != 0) return even;
    return size % 16 != 0 ? rates.misaligned_ratio : 1.0;
  };
  return std::max(ratio(shape.n, rates.even_columns_ratio), ratio(shape.k, rates.even_depth_ratio));
}

}  // namespace

double tile_wave_quantisation(const KernelShape& shape, std::int64_t processors) {
  const double outputs = static_cast<double>(shape.batch) * static_cast<double>(shape.m) * static_cast<double>(shape.n);
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double tiles =
        static_cast<double>(ceil_div(shape.m, tile.rows)) * static_cast<double>(ceil_div(shape.n, tile.columns)) * static_cast<double>(shape.batch);
    for (int split = 0; split <= kMaxSplitLog2; ++split) {
      const double parts = static_cast<double>(1 << split);
      if (split > 0 && static_cast<double>(shape.k) < 256 * parts) break;  // a part shorter than a few main-loop steps is not worth a split
      const double waves = std::ceil(tiles * parts / static_cast<double>(processors));
      const double work = waves * static_cast<double>(processors) * static_cast<double>(tile.rows * tile.columns) / parts;
      const double ratio = work / outputs * tile.cost * (1 + kSplitCost * split);
      if (best == 0 || ratio < best) best = ratio;
    }
  }
  return std::max(best, 1.0);
}

Seconds gemm_time(const KernelShape& shape, const GemmRates& rates) {
  const double depth = 1 + rates.half_depth / static_cast<double>(shape.k);
  const double quantisation = 1 + rates.wave_weight * (tile_wave_quantisation(shape, rates.processors) - 1);
  const double dram = shape.batch > 1 ? rates.batched_dram_efficiency : rates.dram_efficiency;
  const double pass = shape.backward ? rates.backward_ratio : 1.0;
  const Seconds compute = executed_flops(shape) / (rates.peak * rates.efficiency) * (quantisation * depth * pass);
  const Seconds memory = dram_bytes(shape) / (rates.bandwidth * dram);
  return rates.fixed_time + std::max(compute, memory) * alignment_ratio(shape, rates);
}

GemmRates gemm_rates(const Profile& gpu, Dtype dtype) {
  return {.peak = peak_rate(gpu, dtype),
          .bandwidth = BytesPerSecond(gpu.at("dram_bandwidth")),
          .efficiency = gpu.at("gemm_efficiency") * gpu.at("sustained_clock") * (dtype == Dtype::fp8 ? fp8_ratio(gpu) : 1.0),
          .half_depth = gpu.at("gemm_half_depth"),
          .wave_weight = gpu.at("gemm_wave_weight"),
          .dram_efficiency = gpu.at("gemm_dram_efficiency"),
          .batched_dram_efficiency = gpu.at("batched_gemm_dram_efficiency"),
          .backward_ratio = gpu.at("gemm_backward_ratio"),
          .misaligned_ratio = gpu.at("gemm_misaligned_ratio"),
          .even_columns_ratio = gpu.at("gemm_even_columns_ratio"),
          .even_depth_ratio = gpu.at("gemm_even_depth_ratio"),
          .odd_ratio = gpu.at("gemm_odd_ratio"),
          .fixed_time = Seconds(gpu.at("gemm_fixed_time")),
          .processors = static_cast<std::int64_t>(gpu.at("processors"))};
}

}  // namespace stepcast::hw
