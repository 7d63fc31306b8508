// What a launch computes, for executors that run programs with real numbers: a function, the parts of buffers that it works on, and its attributes.
// Plain data beside the ops: an executor that only prices or checks a program never looks at it. docs/native_kernels.md; test: tests/unit/native_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw_models/kernel.hpp"

namespace stepcast::program {

/// Parts in the order in which a call lists them; `?` may be absent. R rows, C columns, all matrices row-major.
enum class Function : std::uint8_t {
  zero,                    // out
  copy,                    // (in, out) ...: out = factor in, with a change of type
  pack,                    // whole, (in, out) ...: the whole is zeroed, then as `copy`
  add,                     // into, in: into += in
  sum,                     // a, b, out
  scale,                   // x: x *= factor
  load_input,              // out: ids (index 0) or labels (index 1) of this micro-batch, int64
  embedding,               // ids, table, out (R x C)
  embedding_backward,      // ids, d_out, d_table
  add_positions,           // x, table, out: row r takes position r mod seq_len
  positions_backward,      // d_out, d_table
  norm,                    // x, weight, bias?, out, statistics: RMSNorm, or with `centred` LayerNorm
  norm_backward,           // d_out, x, statistics, weight, residual?, d_x, d_weight, d_bias?: d_x += residual
  gemm,                    // a (m x k, or its transpose), b (k x n, or its transpose), c, bias?: c = a b (+ c) (+ bias on every row)
  column_sum,              // x, out
  rope,                    // x, out: the first `heads` of `all_heads` per row are rotated, by `factor` 1 or -1 times the angle; the others copied
  attention,               // q, k, v, out, log-sum-exp
  attention_backward,      // d_out, q, k, v, out, log-sum-exp, d_q, d_k, d_v
  gated,                   // gate, up, out = activation(gate) up
  gated_backward,          // d_out, gate, up, d_gate, d_up
  gelu,                    // x, out
  gelu_backward,           // d_out, x, d_x
  cross_entropy,           // logits, labels, log-sum-exp, metrics: adds factor times the sum of losses to the step's loss
  cross_entropy_backward,  // logits, labels, log-sum-exp, d_logits
  sum_of_squares,          // out, in ...
  clip_coefficient,        // squares, metrics: squares become the factor that clips to the greatest norm; the norm is noted
  scale_by,                // factor, x ...
  adamw                    // (parameters, gradient, first moment, second moment) ...
};
const char* name(Function function);

inline constexpr std::uint32_t kNoPart = ~std::uint32_t{0};

/// `count` elements of a buffer from `begin` on; in a group of `group` consecutive ranks the n-th one's begin lies n times `per_rank` further.
struct Part {
  std::uint32_t buffer = kNoPart;
  hw::Dtype dtype = hw::Dtype::fp32;
  std::int64_t begin = 0, count = 0;
  std::int64_t per_rank = 0;
  std::int32_t group = 1;
};

enum class Activation : std::uint8_t { silu, gelu };

/// Those that a function has no use for stay as they are. Strides in elements.
struct Attributes {
  std::int64_t rows = 0, columns = 0, inner = 0;  // gemm: m, n, k
  bool transpose_a = false, transpose_b = false, accumulate = false;
  bool centred = false;
  Activation activation = Activation::silu;
  std::int64_t heads = 0, kv_heads = 0, all_heads = 0, head_dim = 0, seq_len = 0, window = 0;
  std::int64_t stride = 0, kv_stride = 0;  // of rows: of q (or gate and up) and of k and v
  std::int64_t index = 0;
  double factor = 1;
};

/// Of each step the loss and the norm of the gradient before it was clipped; fp64.
inline constexpr std::int64_t kMetricsPerStep = 2;

struct Call {
  Function function = Function::zero;
  std::vector<Part> parts;
  Attributes attributes;
};

/// One tensor of the model: where its elements stand in the order of all, and where their master copy lies: element e on rank (begin + e) / shard of its shard group,
/// at place + (begin + e) mod shard of `master`.
struct ParameterEntry {
  std::string name;  // "b3.q.weight"
  std::int64_t first = 0, elements = 0;
  std::uint32_t params = 0;       // buffer from which kernels read it ...
  std::int64_t params_begin = 0;  // ... and where in it, in elements
  std::uint32_t master = 0;
  hw::Dtype dtype = hw::Dtype::fp32;
  std::int64_t begin = 0, shard = 0, place = 0;
  std::int32_t ranks = 1;
};

}  // namespace stepcast::program
