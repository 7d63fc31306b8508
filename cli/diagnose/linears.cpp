// Test: tests/unit/inference_test.cpp.
#include "cli/diagnose/linears.hpp"

#include <algorithm>
#include <set>

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::Pass;

/// Rows that most forward products have, by their work.
std::int64_t common_rows(const profile::Workload& work) {
  std::map<std::int64_t, double> flop;
  for (const profile::CountedProduct& p : work.products) {
    if (p.pass == Pass::forward && p.product.batch == 1) flop[p.product.m] += p.product.flop() * static_cast<double>(p.count);
  }
  const auto most = std::max_element(flop.begin(), flop.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == flop.end() ? 0 : most->first;
}

/// A number that is a side of every linear layer; of two, the one that more of them have.
std::int64_t common_side(const std::map<Sizes, double>& count) {
  std::map<std::int64_t, std::pair<std::size_t, double>> sides;  // kinds of layers, layers
  for (const auto& [sizes, number] : count) {
    for (const std::int64_t side : std::set{sizes.first, sizes.second}) {
      ++sides[side].first;
      sides[side].second += number * (sizes.first == sizes.second ? 2 : 1);
    }
  }
  std::int64_t best = 0;
  for (const auto& [side, seen] : sides) {
    if (seen.first == count.size() && (best == 0 || seen.second > sides[best].second)) best = side;
  }
  return best;
}

}  // namespace

Linears linears_of(const profile::Workload& work, double forwards) {
  Linears linears;
  linears.tokens = common_rows(work);
  for (const profile::CountedProduct& p : work.products) {
    if (p.pass != Pass::forward || p.product.batch != 1 || p.product.m != linears.tokens) continue;
    const Sizes sizes{p.product.k, p.product.n};
    const double number = static_cast<double>(p.count) / forwards;
    linears.count[sizes] += number;
    if (p.biased) linears.biased[sizes] += number;
  }
  linears.hidden = common_side(linears.count);
  return linears;
}

AttentionSeen attention_seen(const profile::Workload& work, double forwards, std::int64_t tokens) {
  AttentionSeen seen;
  for (const profile::CountedAttention& a : work.attention) {
    if (a.pass != Pass::forward || a.call.backward) continue;
    seen.fused = true;
    seen.layers += static_cast<double>(a.count) / forwards;
    seen.batch = a.call.batch;
    seen.length = a.call.queries;
    seen.heads = a.call.heads;
    seen.kv_heads = a.call.kv_heads;
    seen.head_dim = a.call.head_dim;
  }
  if (seen.fused) return seen;
  for (const profile::CountedProduct& p : work.products) {
    const bool scores = p.pass == Pass::forward && p.product.batch > 1 && p.product.m == p.product.n && p.product.k < p.product.m;
    if (!scores || tokens % p.product.m != 0) continue;
    seen.batch = tokens / p.product.m;
    if (seen.batch == 0 || p.product.batch % seen.batch != 0) continue;
    seen.layers += static_cast<double>(p.count) / forwards;
    seen.length = p.product.m;
    seen.heads = p.product.batch / seen.batch;
    seen.kv_heads = seen.heads;
    seen.head_dim = p.product.k;
  }
  return seen;
}

}  // namespace stepcast::cli
