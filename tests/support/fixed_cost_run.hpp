// Runs a fixed-cost setting through the program builder and the simulator.
#pragma once

#include "program/build.hpp"
#include "sim/simulate.hpp"
#include "tests/support/fixed_cost_oracle.hpp"

namespace stepcast::test {

inline program::StepSpec spec_of(const OracleSetting& s) {
  program::StepSpec spec;
  spec.model = {.style = program::BlockStyle::llama, .hidden = 64, .layers = s.layers, .heads = 4, .kv_heads = 4, .head_dim = 16, .ffn = 128, .vocab = 256};
  using enum program::Sharding;
  spec.policy.sharding = s.no_shard        ? no_shard
                         : s.hybrid        ? (s.shard_grad_op ? hybrid_shard_zero2 : hybrid_shard)
                         : s.shard_grad_op ? shard_grad_op
                                           : full_shard;
  spec.policy.backward_prefetch = static_cast<program::BackwardPrefetch>(s.prefetch);
  spec.policy.forward_prefetch = s.forward_prefetch;
  spec.policy.limit_all_gathers = s.limiter;
  spec.policy.no_sync = s.no_sync;
  spec.batch = {1, s.accumulation, 128};
  spec.kernels.set = program::KernelSet::fixed;
  spec.optimizer.clip_grad_norm = false;
  spec.world = {8, 4};
  return spec;
}

inline sim::FixedCosts costs_of(const OracleSetting& s) {
  const auto ns = [](std::int64_t n) { return SimTime(n * 1000); };
  sim::FixedCosts costs;
  costs.phases = {SimTime{},           ns(s.embedding_forward), ns(s.block_forward),      ns(s.head_forward),
                  ns(s.head_backward), ns(s.block_backward),    ns(s.embedding_backward), ns(s.optimizer)};
  costs.all_gather_block = ns(s.gather_block);
  costs.all_gather_root = ns(s.gather_root);
  costs.reduce_scatter_block = ns(s.scatter_block);
  costs.reduce_scatter_root = ns(s.scatter_root);
  costs.all_reduce_block = ns(s.all_reduce);
  costs.host_per_kernel = ns(s.host_kernel);
  costs.host_per_collective = ns(s.host_collective);
  return costs;
}

inline sim::Result run_fixed(const OracleSetting& setting, std::int32_t ranks = 1) {
  const auto program = program::build_program(spec_of(setting), setting.steps);
  sim::Options options;
  options.ranks = ranks;
  options.memory_limit = false;
  options.launch_queue_depth = 1 << 30;
  return sim::simulate(program, sim::price(program, costs_of(setting)), options);
}

/// Steady step time in ns: between the ends of the last two steps.
inline std::int64_t steady_ns(const OracleSetting& setting) {
  const auto ends = run_fixed(setting).step_end;
  return (ends[ends.size() - 1] - ends[ends.size() - 2]).count() / 1000;
}

}  // namespace stepcast::test
