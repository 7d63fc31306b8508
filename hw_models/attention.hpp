// Time of fused attention, forward and backward. docs/models.md, "Attention". Test: tests/model/attention_test.cpp.
#pragma once

#include "hw_models/hardware.hpp"
#include "hw_models/kernel.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

/// One implementation on one GPU, at the clock that training sustains. Rates are of forward and backward together on long sequences, counting executed work.
struct AttentionRates {
  FlopsPerSecond rate_64, rate_128;  // head dimension 64 and 128
  double half_length = 0;            // tokens at which half the rate is reached, without a mask
  double causal_stretch = 1;         // with a causal mask: half_length times this
  double forward_share = 0.25;       // of the time of forward and backward together
  BytesPerSecond bandwidth;          // achieved DRAM rate, bound for short sequences
  double processors = 1;             // streaming multiprocessors
  Seconds fixed_time{};
  AttentionKernel kernel = AttentionKernel::none;
};
/// Throws InputError where the profile has no constants for the implementation (e.g. flash3 on A100).
AttentionRates attention_rates(const Profile& gpu, AttentionKernel kernel);

/// Head dimension that the kernel computes with: templates are made for some, and others are padded to the next. flash2 and flash3 multiples of 32, flash1 and triton powers of two.
std::int64_t padded_head_dim(AttentionKernel kernel, std::int64_t head_dim);

/// Rate of useful work for a head dimension d padded to p: d / p of a line through (0, 0), (64, rate_64), (128, rate_128), constant above, at p.
FlopsPerSecond attention_rate(const AttentionRates& rates, std::int64_t head_dim);

/// t = t0 + max(share * W / (R(d) s/(s + c s0) u), bytes / B); W: executed FLOPs of forward and backward together (3.5 times the forward's),
/// s: the length, under a window that of the causal square with as many pairs per row; share: forward_share or 1 - forward_share, u: share of the processors that b * a * ceil(s / 128) row blocks can fill (at most 1).
/// Valid for s >= 512 and head dimensions 64 to 256; error seen: docs/models.md.
Seconds attention_time(const KernelShape& shape, const AttentionRates& rates);

}  // namespace stepcast::hw
