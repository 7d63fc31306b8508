// The linear layers of a model, from the products of its forwards. Private to cli/diagnose. Test: tests/unit/inference_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "trace/profile/workload.hpp"

namespace stepcast::cli {

using Sizes = std::pair<std::int64_t, std::int64_t>;  // in, out

/// Of one forward. Counts are means over the forwards: a layer that each block has once counts as many times as there are blocks.
struct Linears {
  std::int64_t tokens = 0;                // rows of the operands
  std::map<Sizes, double> count, biased;  // all; those of them that add a bias
  std::int64_t hidden = 0;                // a side of every one of them; 0: there is none such
  std::int64_t adapter_rank = 0;          // pairs through so narrow a middle beside a layer of their ends are adapters, and not among the others; 0: none
  double adapters = 0;                    // layers that have one

  [[nodiscard]] double of(std::int64_t in, std::int64_t out) const { return at(count, {in, out}); }
  [[nodiscard]] double with_bias(std::int64_t in, std::int64_t out) const { return at(biased, {in, out}); }

 private:
  static double at(const std::map<Sizes, double>& counts, Sizes sizes) {
    const auto place = counts.find(sizes);
    return place == counts.end() ? 0 : place->second;
  }
};

/// `forwards`: of all steps together.
Linears linears_of(const trace::profile::Workload& work, double forwards);

/// The attention of a model: fused, or a product of queries and keys behind which a product with the values comes.
struct AttentionSeen {
  std::int64_t batch = 0, length = 0, heads = 0, kv_heads = 0, head_dim = 0;
  double layers = 0;
  bool fused = false;
};
/// Nothing is known (layers = 0) where neither is seen. `tokens`: rows of the linear layers' operands, which an unfused attention's batch follows from.
AttentionSeen attention_seen(const trace::profile::Workload& work, double forwards, std::int64_t tokens);

/// Feed-forward networks that take only the tokens that a router gives them.
struct ExpertsSeen {
  std::int64_t count = 0, active = 0, ffn = 0;  // 0: none
  bool gated = false, grouped = false;          // grouped: one call for several experts
};
/// `layers`: blocks. Counts the router's columns or the matrices of a grouped product, and rows of the experts' products against the tokens.
ExpertsSeen experts_seen(const trace::profile::Workload& work, const Linears& linears, double forwards, std::int64_t layers);

}  // namespace stepcast::cli
