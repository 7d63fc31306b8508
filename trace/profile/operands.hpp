// What operators computed on, from their recorded "Input Dims" and "Input type": matrix products and fused attention.
// docs/diagnose.md, "Rates". Test: tests/unit/profile_operands_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hw_models/kernel.hpp"

namespace stepcast::trace::profile {

/// `batch` products (m x k)(k x n). Of one call for several experts (`groups` matrices) the rows of all of them together; in the gradients of their weights it is k that is divided among them.
struct Product {
  std::int64_t batch = 1, m = 0, n = 0, k = 0, groups = 1;
  [[nodiscard]] double flop() const { return 2 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
  auto operator<=>(const Product&) const = default;
};
/// Of aten::mm, addmm, bmm, baddbmm, or of the backward of one (as simulated traces call it), and of grouped products (aten::_grouped_mm and _scaled_grouped_mm, the grouped_gemm package,
/// Transformer Engine's GroupedLinear); nothing for other operators or shapes that don't fit.
std::optional<Product> product_of(std::string_view op, std::string_view input_dims);
/// One call for the products of several experts.
bool is_grouped_product(std::string_view op);

/// Fused attention.
struct AttentionCall {
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, head_dim = 0;
  bool backward = false;
  /// Over all pairs of queries and keys: 4 per pair and element of a head in the forward, 10 in the backward, which computes the scores again.
  [[nodiscard]] double flop() const;
  auto operator<=>(const AttentionCall&) const = default;
};
/// Of PyTorch's and flash-attn's operators that launch the kernel; nothing for others.
std::optional<AttentionCall> attention_of(std::string_view op, std::string_view input_dims);

/// The first floating-point type of "Input type".
std::optional<hw::Dtype> dtype_of(std::string_view input_types);
/// Of c10d's "dtype".
std::optional<hw::Dtype> dtype_of_collective(std::string_view dtype);

/// Rows of what an embedding looks up, and the sizes of the lookup: table [V, h] and ids [b, s].
struct Lookup {
  std::int64_t rows = 0, width = 0, batch = 0, length = 0;
};
std::optional<Lookup> lookup_of(std::string_view op, std::string_view input_dims);

}  // namespace stepcast::trace::profile
