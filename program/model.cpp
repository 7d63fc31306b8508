// Tensor lists of the two block styles and sums over them.
#include "program/model.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>

namespace stepcast::program {
namespace {

class TensorList {
 public:
  explicit TensorList(const ModelShape& model, bool frozen_part = false) : model_(model), frozen_part_(frozen_part) {}
  void weight(const std::string& name, std::int64_t in, std::int64_t out, bool bias) {
    tensors.push_back({name + ".weight", in * out, true, out, frozen()});
    if (bias) tensors.push_back({name + ".bias", out, false, out, frozen()});
    if (!has_adapter(model_, name)) return;
    tensors.push_back({name + ".lora_a.weight", model_.lora_rank * in, true, model_.lora_rank});
    tensors.push_back({name + ".lora_b.weight", out * model_.lora_rank, true, out});
  }
  void norm(const char* name, const ModelShape& model) {
    vector(name, ".weight", model.hidden);
    if (model.norm == NormKind::layer_norm && model.norm_bias) vector(name, ".bias", model.hidden);
  }
  void vector(const char* name, const char* suffix, std::int64_t elements) {
    tensors.push_back({std::string(name) + suffix, elements, false, elements, frozen()});
  }
  [[nodiscard]] bool frozen() const { return frozen_part_ || model_.lora_rank > 0; }
  std::vector<ParameterTensor> tensors;

 private:
  const ModelShape& model_;
  bool frozen_part_;
};

std::int64_t sum(const std::vector<ParameterTensor>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0}, [](std::int64_t total, const ParameterTensor& t) { return total + t.elements; });
}

std::int64_t sum_matmul(const std::vector<ParameterTensor>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0},
                         [](std::int64_t total, const ParameterTensor& t) { return total + (t.matmul ? t.elements : 0); });
}

void add_feed_forward(const ModelShape& model, const std::string& prefix, TensorList& list) {
  const bool gated = model.ffn_kind != FfnKind::gelu;
  if (gated && model.fused_gate_up) {
    list.weight(prefix + "gate_up", model.hidden, 2 * model.ffn, model.ffn_bias);
  } else {
    if (gated) list.weight(prefix + "gate", model.hidden, model.ffn, model.ffn_bias);
    list.weight(prefix + "up", model.hidden, model.ffn, model.ffn_bias);
  }
  list.weight(prefix + "down", model.ffn, model.hidden, model.ffn_bias);
}

std::int64_t parameters_per_expert(const ModelShape& model) {
  TensorList list(model);
  add_feed_forward(model, "", list);
  return sum(list.tensors);
}

}  // namespace

std::vector<ParameterTensor> block_tensors(const ModelShape& model, std::int64_t block) {
  const std::int64_t h = model.hidden, q = query_width(model), kv = kv_width(model);
  TensorList list(model, block < model.frozen_blocks);
  list.norm("norm1", model);
  if (model.fused_qkv) {
    list.weight("qkv", h, q + 2 * kv, model.attention_bias);
  } else {
    list.weight("q", h, q, model.attention_bias);
    list.weight("k", h, kv, model.attention_bias);
    list.weight("v", h, kv, model.attention_bias);
  }
  list.weight("out", q, h, model.output_bias);
  if (model.layout == BlockLayout::sandwich) list.norm("norm1_post", model);
  if (model.layout != BlockLayout::parallel) list.norm("norm2", model);
  if (model.experts > 0) list.weight("router", h, model.experts, false);
  for (std::int64_t i = 0; i < model.experts; ++i) add_feed_forward(model, expert_prefix(i), list);
  if (model.experts == 0) add_feed_forward(model, "", list);
  if (model.layout == BlockLayout::sandwich) list.norm("norm2_post", model);
  return std::move(list.tensors);
}

std::vector<ParameterTensor> root_tensors(const ModelShape& model) {
  const bool frozen = embedding_is_frozen(model);
  std::vector<ParameterTensor> tensors{{"embedding.weight", model.vocab * model.hidden, model.tied_embeddings, model.vocab, frozen}};
  if (model.positions == Positions::learned) tensors.push_back({"positions.weight", model.max_positions * model.hidden, false, model.max_positions, frozen});
  TensorList behind(model, model.frozen_head);
  behind.norm("norm", model);
  if (!model.tied_embeddings) behind.weight("head", model.hidden, model.vocab, false);
  tensors.insert(tensors.end(), behind.tensors.begin(), behind.tensors.end());
  return tensors;
}

std::int64_t parameters_per_block(const ModelShape& model) { return sum(block_tensors(model)); }
std::int64_t root_parameters(const ModelShape& model) { return sum(root_tensors(model)); }
std::int64_t parameters(const ModelShape& model) { return model.layers * parameters_per_block(model) + root_parameters(model); }
std::int64_t active_parameters(const ModelShape& model) {
  return parameters(model) - model.layers * (model.experts - model.active_experts) * parameters_per_expert(model);
}
std::int64_t matmul_parameters(const ModelShape& model) { return model.layers * sum_matmul(block_tensors(model)) + sum_matmul(root_tensors(model)); }

bool has_adapter(const ModelShape& model, std::string_view linear) {
  const auto one_of = [&](std::initializer_list<std::string_view> names) { return std::find(names.begin(), names.end(), linear) != names.end(); };
  if (model.lora_rank == 0) return false;
  if (one_of({"q", "v", "qkv"})) return true;
  if (one_of({"k", "out"})) return model.lora_targets != LoraTargets::query_value;
  return one_of({"gate", "up", "gate_up", "down"}) && model.lora_targets == LoraTargets::all_linear;
}

std::int64_t trained_elements(const std::vector<ParameterTensor>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0},
                         [](std::int64_t total, const ParameterTensor& t) { return total + (t.frozen ? 0 : t.elements); });
}

std::int64_t trained_parameters(const ModelShape& model) {
  return (model.layers - model.frozen_blocks) * trained_elements(block_tensors(model)) + trained_elements(root_tensors(model));
}

bool gathered_in_fp8(const ParameterTensor& tensor, const Precision& precision) {
  return precision.fp8_all_gather && tensor.matmul && tensor.name != "router.weight" && tensor.name != "head.weight" && tensor.name != "embedding.weight";
}

FlatParameter flatten(const std::vector<ParameterTensor>& tensors, std::int64_t ranks, bool use_orig_params, hw::Dtype param_dtype) {
  const auto round_up = [](std::int64_t value, std::int64_t multiple) { return (value + multiple - 1) / multiple * multiple; };
  FlatParameter flat{.ranks = ranks};
  if (use_orig_params) {
    const std::int64_t alignment = 16 / hw::bytes_per_element(param_dtype);
    for (const ParameterTensor& tensor : tensors) flat.elements = round_up(flat.elements, alignment) + tensor.elements;
    flat.elements = round_up(flat.elements, ranks);
  } else {
    flat.elements = sum(tensors);
  }
  flat.shard = round_up(flat.elements, ranks) / ranks;
  return flat;
}

DivideFactors divide_factors(std::int64_t ranks) {
  std::int64_t factor = 1;
  while (ranks % factor == 0 && ranks / factor > factor) factor *= 2;
  return {static_cast<double>(factor), static_cast<double>(ranks) / static_cast<double>(factor)};
}

}  // namespace stepcast::program
