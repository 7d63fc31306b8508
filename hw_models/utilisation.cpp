// See utilisation.hpp.
#include "hw_models/utilisation.hpp"

namespace stepcast::hw {

Flops forward_flops_per_token(const FlopCounts& counts, double pair_share) {
  const double pairs = static_cast<double>(counts.layers) * static_cast<double>(counts.attention_width) * static_cast<double>(counts.seq_len);
  return Flops(2.0 * static_cast<double>(counts.matmul_parameters) + 4.0 * pairs * pair_share);
}

Flops model_flops_per_token(const FlopCounts& counts, double pair_share) { return 3.0 * forward_flops_per_token(counts, pair_share); }

Flops hardware_flops_per_token(const FlopCounts& counts, double pair_share, double recomputed_share) {
  return (3.0 + recomputed_share) * forward_flops_per_token(counts, pair_share);
}

double utilisation(Flops per_token, double tokens_per_second, FlopsPerSecond peak) { return per_token.si() * tokens_per_second / peak.si(); }

std::int64_t global_batch_sequences(std::int64_t ranks, std::int64_t micro_batch, std::int64_t grad_accum) { return ranks * micro_batch * grad_accum; }

}  // namespace stepcast::hw
