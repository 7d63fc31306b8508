// Model shapes and step specifications that many tests start from. Shapes as published: Llama 2 and 3 (Touvron et al. 2023; Meta 2024), GPT-2 XL (Radford et al. 2019),
// MPT-7B as benchmarked in mosaicml/llm-foundry (learned positions, biases).
#pragma once

#include "program/spec.hpp"

namespace stepcast::program::test {

/// Elements of Llama-2-7B's weights: an embedding or head, a projection of attention, one of the feed-forward.
constexpr std::int64_t kTable = std::int64_t{32000} * 4096, kSquare = std::int64_t{4096} * 4096, kWide = std::int64_t{11008} * 4096;

inline ModelShape llama2_7b() {
  ModelShape m;
  m.hidden = 4096, m.layers = 32, m.heads = 32, m.kv_heads = 32, m.head_dim = 128, m.ffn = 11008, m.vocab = 32000;
  return m;
}

inline ModelShape llama3_8b() {
  ModelShape m = llama2_7b();
  m.kv_heads = 8, m.ffn = 14336, m.vocab = 128256;
  return m;
}

inline ModelShape gpt(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t vocab, std::int64_t positions, bool tied) {
  ModelShape m;
  m.style = BlockStyle::gpt, m.ffn_kind = FfnKind::gelu, m.norm = NormKind::layer_norm, m.positions = Positions::learned;
  m.hidden = hidden, m.layers = layers, m.heads = heads, m.kv_heads = heads, m.head_dim = hidden / heads, m.ffn = 4 * hidden, m.vocab = vocab;
  m.max_positions = positions, m.tied_embeddings = tied;
  m.attention_bias = m.output_bias = m.ffn_bias = m.norm_bias = m.fused_qkv = true;
  return m;
}

inline ModelShape mpt_7b() { return gpt(4096, 32, 32, 50368, 2048, true); }
inline ModelShape gpt2_xl() { return gpt(1600, 48, 25, 50257, 1024, true); }

inline ModelShape mixtral_8x7b() {
  ModelShape m = llama3_8b();
  m.vocab = 32000, m.experts = 8, m.active_experts = 2;
  return m;
}

/// One projection for q, k and v, one for gate and up.
inline ModelShape phi3_mini() {
  ModelShape m = llama2_7b();
  m.hidden = 3072, m.head_dim = 96, m.ffn = 8192, m.vocab = 32064, m.sliding_window = 2048, m.fused_qkv = m.fused_gate_up = true;
  return m;
}

/// Attention and feed-forward beside each other behind one norm; one head for keys and values.
inline ModelShape falcon_7b() {
  ModelShape m = gpt(4544, 32, 71, 65024, 2048, true);
  m.kv_heads = 1, m.positions = Positions::rope, m.layout = BlockLayout::parallel;
  m.attention_bias = m.output_bias = m.ffn_bias = false;
  return m;
}

/// Four norms per block, GeGLU, capped scores and logits, a window in every other block.
inline ModelShape gemma2_9b() {
  ModelShape m = llama3_8b();
  m.hidden = 3584, m.layers = 42, m.heads = 16, m.head_dim = 256, m.ffn_kind = FfnKind::geglu, m.vocab = 256000, m.tied_embeddings = true;
  m.layout = BlockLayout::sandwich, m.sliding_window = 4096, m.full_attention_every = 2;
  m.attention_softcap = m.logit_softcap = m.scaled_embedding = true;
  return m;
}

/// 32 GPUs on 4 nodes, bf16 with fp32 master, one sequence of 4096 tokens.
inline StepSpec reference_step(const ModelShape& model = llama2_7b()) {
  StepSpec spec;
  spec.model = model;
  spec.batch = {.micro_batch = 1, .grad_accum = 1, .seq_len = 4096};
  spec.world = {.ranks_per_node = 8, .nodes = 4};
  return spec;
}

/// The schedule alone: each phase one kernel.
inline StepSpec fixed_step(std::int64_t layers) {
  StepSpec spec = reference_step();
  spec.model.layers = layers;
  spec.kernels.set = KernelSet::fixed;
  return spec;
}

}  // namespace stepcast::program::test
