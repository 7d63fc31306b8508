// Sizes of a model: which parameter tensors it has, how many elements they hold, and how a unit of them is laid out as one flat parameter.
// Layout rules: PyTorch torch/distributed/fsdp/_flat_param.py. Test: tests/unit/model_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/spec.hpp"

namespace stepcast::program {

/// One parameter tensor. `matmul`: it is the weight of a GEMM; `rows`: its first dimension.
struct ParameterTensor {
  std::string name;
  std::int64_t elements = 0;
  bool matmul = false;
  std::int64_t rows = 1;
  bool frozen = false;  // has no gradient and no optimizer state
};

inline constexpr std::int64_t kLastBlock = INT64_MAX;  // any that is not frozen as a whole

/// Tensors of one block, in module order, and of everything outside the blocks (embedding, position table, final norm, head unless tied).
std::vector<ParameterTensor> block_tensors(const ModelShape& model, std::int64_t block = kLastBlock);
std::vector<ParameterTensor> root_tensors(const ModelShape& model);

/// Elements. `matmul_parameters`: weights that GEMMs multiply with: without the embedding's lookup table (unless it is tied to the head), positions, norms and biases.
std::int64_t parameters(const ModelShape& model);
/// Those that one token passes through: all but the experts that it is not routed to.
std::int64_t active_parameters(const ModelShape& model);
std::int64_t parameters_per_block(const ModelShape& model);
std::int64_t root_parameters(const ModelShape& model);
std::int64_t matmul_parameters(const ModelShape& model);

/// What the names of an expert's tensors begin with.
inline std::string expert_prefix(std::int64_t expert) { return std::string("e").append(std::to_string(expert)).append("."); }

/// Widths of the projections, in elements.
inline std::int64_t query_width(const ModelShape& model) { return model.heads * model.head_dim; }
inline std::int64_t kv_width(const ModelShape& model) { return model.kv_heads * model.head_dim; }

/// Whether adapters stand beside a linear layer of the blocks: its input A^T, of `lora_rank` columns, times B^T is added to its output.
bool has_adapter(const ModelShape& model, std::string_view linear);
/// Of those of all blocks: what the optimizer updates.
std::int64_t trained_parameters(const ModelShape& model);
std::int64_t trained_elements(const std::vector<ParameterTensor>& tensors);

/// Weights of the blocks' linear layers, as far as they are gathered in 8 bits.
bool gathered_in_fp8(const ParameterTensor& tensor, const Precision& precision);

/// A unit's parameters as one tensor. `elements`: length of the unsharded flat parameter and of its gradient; `shard`: what each rank owns.
struct FlatParameter {
  std::int64_t elements = 0, shard = 0;
  std::int64_t ranks = 1;
  [[nodiscard]] std::int64_t padded() const { return shard * ranks; }
};

/// With `use_orig_params` every tensor begins on a 16-byte boundary and the end is padded to a multiple of `ranks`; without, only the shards are.
FlatParameter flatten(const std::vector<ParameterTensor>& tensors, std::int64_t ranks, bool use_orig_params, hw::Dtype param_dtype);

/// Gradients are divided by `pre` before the reduce-scatter and by `post` after it; pre is a power of two near the root of `ranks` (pre * post = ranks).
struct DivideFactors {
  double pre = 1, post = 1;
};
DivideFactors divide_factors(std::int64_t ranks);

}  // namespace stepcast::program
