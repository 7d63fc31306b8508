// Time of a dense or batched matrix product. docs/models.md, "GEMM". Test: tests/model/gemm_test.cpp.
#pragma once

#include <cstdint>

#include "hw_models/hardware.hpp"
#include "hw_models/kernel.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

/// What the formula needs to know of a GPU; ratios are pure numbers.
struct GemmRates {
  FlopsPerSecond peak;                 // tensor-core peak of the operand type
  BytesPerSecond bandwidth;            // DRAM, datasheet
  double efficiency = 1;               // share of `peak` inside full tiles, at the clock that training sustains
  double half_depth = 0;               // k at which half of `efficiency` is reached: filling and draining of a tile's pipeline
  double wave_weight = 1;              // 0: quantisation is free; 1: it costs in full
  double dram_efficiency = 1;          // share of `bandwidth`
  double batched_dram_efficiency = 1;  // the same for a batched product: short main loops, much to write (unfused attention)
  double backward_ratio = 1;           // time ratio of a product of the backward to one of the forward
  double misaligned_ratio = 1;         // time ratio when a leading dimension is a multiple of 8 but not of 16 elements
  double even_columns_ratio = 1;       // time ratio when n is even, but not a multiple of 8: the rows of one operand and of the result begin off their loads
  double even_depth_ratio = 1;         // the same of k: those of the operand that is read along it
  double odd_ratio = 1;                // time ratio when it is odd
  Seconds fixed_time{};                // start, first loads, last stores
  std::int64_t processors = 1;         // streaming multiprocessors
};
GemmRates gemm_rates(const Profile& gpu, Dtype dtype);

/// Ratio (>= 1) of the work that full waves of output tiles do to the work asked for: the best of tiles 128x256, 256x128 and 128x128 (8 % dearer) with
/// split-K 1, 2, 4, 8 (3 % dearer per doubling).
double tile_wave_quantisation(const KernelShape& shape, std::int64_t processors);

/// t = t0 + a * max(r 2mn(k + k0) b / (e F) * (1 + g (q - 1)), bytes / (em W)); k0: half_depth, a: alignment ratio, r: 1 or backward_ratio, q: tile_wave_quantisation,
/// g: wave_weight.
/// Valid for m, n, k >= 64 and times above about 20 us; error seen: see docs/models.md.
Seconds gemm_time(const KernelShape& shape, const GemmRates& rates);

}  // namespace stepcast::hw
