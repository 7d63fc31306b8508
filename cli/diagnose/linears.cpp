// Test: tests/unit/inference_test.cpp.
#include "cli/diagnose/linears.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::Pass;

/// Rows that most forward products have, by their work.
std::int64_t common_rows(const profile::Workload& work) {
  std::map<std::int64_t, double> flop;
  for (const profile::CountedProduct& p : work.products) {
    if (p.pass == Pass::forward && p.product.batch == 1 && p.product.groups == 1) flop[p.product.m] += p.product.flop() * static_cast<double>(p.count);
  }
  const auto most = std::max_element(flop.begin(), flop.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == flop.end() ? 0 : most->first;
}

/// Rows that attention's queries have together, if linear layers have them too: experts, which have other rows, may be most of the work.
std::int64_t rows_of(const profile::Workload& work) {
  for (const profile::CountedAttention& a : work.attention) {
    const std::int64_t rows = a.call.batch * a.call.queries;
    const bool common = std::any_of(work.products.begin(), work.products.end(),
                                    [&](const profile::CountedProduct& p) { return p.pass == Pass::forward && p.product.batch == 1 && p.product.m == rows; });
    if (a.pass == Pass::forward && !a.call.backward && common) return rows;
  }
  return common_rows(work);
}

bool about(double a, double b) { return std::fabs(a - b) < 0.01 * std::max(1.0, b); }

/// Layers into and out of a middle of this width.
struct Pairs {
  double into = 0, out = 0;
  std::int64_t narrowest_end = 0;
  std::set<std::int64_t> outputs;
};
Pairs pairs_through(const std::map<Sizes, double>& count, std::int64_t middle) {
  Pairs pairs;
  for (const auto& [sizes, number] : count) {
    if (sizes.first != middle && sizes.second != middle) continue;
    const std::int64_t end = sizes.first == middle ? sizes.second : sizes.first;
    (sizes.first == middle ? pairs.out : pairs.into) += number;
    if (sizes.first == middle) pairs.outputs.insert(end);
    pairs.narrowest_end = pairs.narrowest_end == 0 ? end : std::min(pairs.narrowest_end, end);
  }
  return pairs;
}

/// Beside each adapter is the layer itself: without it a narrow middle belongs to the model.
bool beside_layers(const std::map<Sizes, double>& count, const Pairs& pairs, std::int64_t middle) {
  return std::all_of(pairs.outputs.begin(), pairs.outputs.end(), [&](std::int64_t output) {
    return std::any_of(count.begin(), count.end(), [&](const auto& layer) { return layer.first.second == output && layer.first.first != middle; });
  });
}

void take_adapters_out(Linears& linears) {
  std::set<std::int64_t> sides;
  for (const auto& [sizes, number] : linears.count) sides.insert({sizes.first, sizes.second});
  for (const std::int64_t middle : sides) {
    const Pairs pairs = pairs_through(linears.count, middle);
    if (pairs.into == 0 || !about(pairs.into, pairs.out) || pairs.narrowest_end < 4 * middle || !beside_layers(linears.count, pairs, middle)) continue;
    linears.adapter_rank = middle;
    linears.adapters = pairs.into;
    std::erase_if(linears.count, [middle](const auto& layer) { return layer.first.first == middle || layer.first.second == middle; });
    return;
  }
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

/// Rows of the experts' products by their sizes: of other rows than the tokens, or of one call for several experts.
struct ExpertProducts {
  std::map<Sizes, double> rows;
  std::int64_t groups = 1;  // experts that one call is for
};
ExpertProducts expert_products(const profile::Workload& work, const Linears& linears) {
  ExpertProducts products;
  for (const profile::CountedProduct& p : work.products) {
    const bool grouped = p.product.groups > 1;
    if (p.pass != Pass::forward || p.product.batch != 1 || (p.product.m == linears.tokens && !grouped)) continue;
    products.rows[{p.product.k, p.product.n}] += static_cast<double>(p.product.m) * static_cast<double>(p.count);
    products.groups = std::max(products.groups, p.product.groups);
  }
  return products;
}

/// The width from which most rows lead back to the model's, and how many. A way to that width, or to twice as much (gate and up in one), must be there, too.
std::pair<std::int64_t, double> leading_back(const std::map<Sizes, double>& rows, std::int64_t hidden) {
  std::pair<std::int64_t, double> best{};
  for (const auto& [sizes, number] : rows) {
    const auto [in, out] = sizes;
    const bool there = rows.contains({hidden, in}) || rows.contains({hidden, 2 * in});
    if (out == hidden && in != hidden && number > best.second && there) best = {in, number};
  }
  return best;
}

/// Of the narrowest linear layer that each block has once; 0: there is none.
std::int64_t router_columns(const Linears& linears, std::int64_t layers) {
  std::int64_t columns = 0;
  for (const auto& [sizes, number] : linears.count) {
    const bool router = sizes.first == linears.hidden && sizes.second > 1 && about(number, static_cast<double>(layers));
    if (router && (columns == 0 || sizes.second < columns)) columns = sizes.second;
  }
  return columns;
}

/// A call may be for the experts of this rank alone: then the router has a multiple of them. Else the narrowest layer is no router.
std::int64_t expert_count(std::int64_t columns, std::int64_t groups) { return groups > 1 && (columns == 0 || columns % groups != 0) ? groups : columns; }

}  // namespace

Linears linears_of(const profile::Workload& work, double forwards) {
  Linears linears;
  linears.tokens = rows_of(work);
  for (const profile::CountedProduct& p : work.products) {
    if (p.pass != Pass::forward || p.product.batch != 1 || p.product.groups != 1 || p.product.m != linears.tokens) continue;
    const Sizes sizes{p.product.k, p.product.n};
    const double number = static_cast<double>(p.count) / forwards;
    linears.count[sizes] += number;
    if (p.biased) linears.biased[sizes] += number;
  }
  take_adapters_out(linears);
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

ExpertsSeen experts_seen(const profile::Workload& work, const Linears& linears, double forwards, std::int64_t layers) {
  const double tokens = static_cast<double>(linears.tokens) * static_cast<double>(layers) * forwards;
  const ExpertProducts products = expert_products(work, linears);
  const auto [ffn, down] = leading_back(products.rows, linears.hidden);
  if (down == 0 || tokens == 0) return {};
  const auto rows_of_width = [&](std::int64_t width) {
    return products.rows.contains({linears.hidden, width}) ? products.rows.at({linears.hidden, width}) : 0;
  };
  ExpertsSeen seen;
  seen.grouped = products.groups > 1;
  seen.count = expert_count(router_columns(linears, layers), products.groups);
  seen.ffn = ffn;
  seen.active = std::llround(down / tokens);
  seen.gated = rows_of_width(ffn) > 1.9 * down || rows_of_width(2 * ffn) > 0.9 * down;
  return seen.active > 0 && seen.active < seen.count ? seen : ExpertsSeen{};
}

}  // namespace stepcast::cli
