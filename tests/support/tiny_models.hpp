// The two models whose training PyTorch has computed in fp64 (../shared/reference), as steps of native kernels on one rank; and what PyTorch found.
#pragma once

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "program/build.hpp"
#include "real_backend/train.hpp"
#include "tests/support/paths.hpp"

namespace stepcast::real::test {

inline program::StepSpec native_step() {
  program::StepSpec spec;
  spec.kernels.set = program::KernelSet::native;
  spec.kernels.loss = program::Loss::fused;
  spec.optimizer.implementation = program::OptimizerImpl::fused;
  spec.precision = {hw::Dtype::fp64, hw::Dtype::fp64, hw::Dtype::fp64};
  spec.batch = {.micro_batch = 8, .grad_accum = 1, .seq_len = 12};
  return spec;
}

inline program::StepSpec tiny_llama() {
  program::StepSpec spec = native_step();
  program::ModelShape& m = spec.model;
  m.hidden = 32, m.layers = 3, m.heads = 4, m.kv_heads = 2, m.head_dim = 8, m.ffn = 80, m.vocab = 64;
  return spec;
}

inline program::StepSpec tiny_gpt() {
  program::StepSpec spec = native_step();
  program::ModelShape& m = spec.model;
  m.style = program::BlockStyle::gpt, m.ffn_kind = program::FfnKind::gelu, m.norm = program::NormKind::layer_norm, m.positions = program::Positions::learned;
  m.hidden = 32, m.layers = 3, m.heads = 4, m.kv_heads = 4, m.head_dim = 8, m.ffn = 128, m.vocab = 64, m.max_positions = 12, m.tied_embeddings = true;
  m.attention_bias = m.output_bias = m.ffn_bias = m.norm_bias = m.fused_qkv = true;
  return spec;
}

/// The same global batch on this many ranks.
inline void spread(program::StepSpec& spec, std::int32_t ranks, std::int64_t accumulation = 1) {
  spec.batch.micro_batch /= ranks * accumulation;
  spec.batch.grad_accum = accumulation;
  spec.world = {ranks, 1};
}

inline JobSettings closed_form(const program::StepSpec& spec) {
  JobSettings settings;
  settings.training = {Source::closed_form, 0, spec.model.vocab, spec.batch.seq_len, spec.batch.micro_batch, spec.world.ranks(), {}};
  settings.memory.pool_bytes = std::int64_t{1} << 30;
  return settings;
}

inline JobResult train(const program::StepSpec& spec, int steps) { return train_on_host(program::build_program(spec, steps), closed_form(spec)); }

/// Absent where the reference is not.
inline std::optional<nlohmann::json> reference(const std::string& file) {
  std::ifstream in(stepcast::test::source_dir() + "/../shared/reference/" + file);
  if (!in) return {};
  return nlohmann::json::parse(in);
}

inline bool close(double a, double b, double tolerance = 1e-9) { return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)); }

}  // namespace stepcast::real::test
