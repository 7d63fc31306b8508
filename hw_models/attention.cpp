// See attention.hpp. Form and constants: bar labels of the flash-attention repository's plots; forward share from step-time fits.
#include "hw_models/attention.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "hw_models/input_error.hpp"

namespace stepcast::hw {

namespace {

constexpr double kRowBlock = 128;       // query rows per thread block of the fused kernels
constexpr double kBackwardRatio = 2.5;  // matrix work of the backward against the forward

/// Of the implementation where the profile names it, else of all.
double forward_share(const Profile& gpu, const std::string& key) {
  const auto own = gpu.constants.find(key + "forward_share");
  return own == gpu.constants.end() ? gpu.at("attention_forward_share") : own->second.value;
}

std::string prefix(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::none: break;
    case AttentionKernel::flash1: return "attention_flash1_";
    case AttentionKernel::flash2: return "attention_flash2_";
    case AttentionKernel::flash3: return "attention_flash3_";
    case AttentionKernel::triton: return "attention_triton_";
    case AttentionKernel::efficient: return "attention_efficient_";
  }
  return "attention_none_";
}

double occupancy(const KernelShape& shape, double processors) {
  const double blocks = static_cast<double>(shape.batch) * static_cast<double>(shape.n) * std::ceil(static_cast<double>(shape.m) / kRowBlock);
  return std::min(1.0, blocks / processors);
}

}  // namespace

/// Launch templates of Dao-AILab/flash-attention: csrc/flash_attn/src/static_switch.h (HEADDIM_SWITCH; 2.x), fmha (1.x), flash_attn_triton.py (BLOCK_HEADDIM).
std::int64_t padded_head_dim(AttentionKernel kernel, std::int64_t head_dim) {
  switch (kernel) {
    case AttentionKernel::flash2:
    case AttentionKernel::flash3: return (head_dim + 31) / 32 * 32;
    case AttentionKernel::flash1:
    case AttentionKernel::triton: return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(head_dim)));
    case AttentionKernel::efficient:
    case AttentionKernel::none: break;
  }
  return head_dim;
}

FlopsPerSecond attention_rate(const AttentionRates& rates, std::int64_t head_dim) {
  const auto p = static_cast<double>(padded_head_dim(rates.kernel, head_dim));
  const double useful = static_cast<double>(head_dim) / p;
  if (p <= 64) return rates.rate_64 * (p / 64) * useful;
  if (p >= 128) return rates.rate_128 * useful;
  return (rates.rate_64 + (rates.rate_128 - rates.rate_64) * ((p - 64) / 64)) * useful;
}

Seconds attention_time(const KernelShape& shape, const AttentionRates& rates) {
  const bool forward = shape.kind == KernelKind::attention_forward;
  const Flops both = executed_flops(shape) * ((1 + kBackwardRatio) / (forward ? 1.0 : kBackwardRatio));
  const double share = forward ? rates.forward_share : 1 - rates.forward_share;
  const double length = static_cast<double>(shape.m) * (shape.causal ? 2 * attended_share(shape) : 1);
  const double rise = length / (length + rates.half_length * (shape.causal ? rates.causal_stretch : 1.0));
  const Seconds compute = both * share / (attention_rate(rates, shape.k) * (rise * occupancy(shape, rates.processors)));
  return rates.fixed_time + std::max(compute, dram_bytes(shape) / rates.bandwidth);
}

AttentionRates attention_rates(const Profile& gpu, AttentionKernel kernel) {
  const std::string key = prefix(kernel);
  if (!gpu.constants.contains(key + "rate_128")) {
    throw InputError("hardware", gpu.name, "no figures for the attention kernel " + key.substr(10, key.size() - 11),
                     "choose another /kernels/attention or GPU");
  }
  const double clock = gpu.at("sustained_clock");  // the plots are of short runs
  return {.rate_64 = FlopsPerSecond(gpu.at(key + "rate_64")) * clock,
          .rate_128 = FlopsPerSecond(gpu.at(key + "rate_128")) * clock,
          .half_length = gpu.at(key + "half_length"),
          .causal_stretch = gpu.at(key + "causal_stretch"),
          .forward_share = forward_share(gpu, key),
          .bandwidth = BytesPerSecond(gpu.at("dram_bandwidth") * gpu.at("efficiency_elementwise")),
          .processors = gpu.at("processors"),
          .fixed_time = Seconds(gpu.at("memory_fixed_time")),
          .kernel = kernel};
}

}  // namespace stepcast::hw
