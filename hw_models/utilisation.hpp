// FLOPs per token by convention, and utilisation. docs/models.md, "FLOPs and utilisation". Test: tests/model/utilisation_test.cpp.
#pragma once

#include <cstdint>

#include "hw_models/units.hpp"

namespace stepcast::hw {

/// What the FLOP conventions need to know of a decoder-only transformer.
struct FlopCounts {
  std::int64_t matmul_parameters = 0;  // weights that take part in matrix products: blocks and output head, no lookup tables
  std::int64_t layers = 0;
  std::int64_t attention_width = 0;  // query heads times head dimension
  std::int64_t seq_len = 0;
};

/// Share of the s x s pairs of tokens that a convention counts.
inline constexpr double kAllPairs = 1, kCausalPairs = 0.5, kNoAttention = 0;

/// One token's forward: 2 P + 4 L a s x pair_share (Q K^T and P V, 2 a s each).
Flops forward_flops_per_token(const FlopCounts& counts, double pair_share);
/// Forward and backward: three times the forward, 6 P + 12 L a s. What MFU counts (Chowdhery et al., "PaLM", 2022, appendix B).
Flops model_flops_per_token(const FlopCounts& counts, double pair_share);
/// Model FLOPs and a second forward for the share of it that is recomputed: 8 P + 16 L a s for all of it. What HFU counts.
Flops hardware_flops_per_token(const FlopCounts& counts, double pair_share, double recomputed_share);

/// MFU or HFU, by what is counted: FLOPs per token times tokens per second and GPU, over the GPU's peak.
double utilisation(Flops per_token, double tokens_per_second, FlopsPerSecond peak);

/// Sequences of one optimizer step over all data-parallel ranks.
std::int64_t global_batch_sequences(std::int64_t ranks, std::int64_t micro_batch, std::int64_t grad_accum);

}  // namespace stepcast::hw
