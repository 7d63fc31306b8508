// Sums over the ops of a range. Definitions: docs/check.md, "Counting". Test: tests/unit/count_test.cpp.
#include "program/count.hpp"
#include "program/model.hpp"

namespace stepcast::program {
namespace {

/// Follows the nesting of recompute marks.
class RecomputeDepth {
 public:
  void visit(const Program& program, const Op& op) {
    if (op.kind != OpKind::mark || program.marks[op.id].kind != MarkKind::recompute) return;
    depth_ += program.marks[op.id].begin ? 1 : -1;
  }
  [[nodiscard]] bool inside() const { return depth_ > 0; }

 private:
  int depth_ = 0;
};

void count_collective(const hw::CollectiveShape& shape, Counts& counts) {
  CollectiveCount& total = counts.collectives[static_cast<std::size_t>(shape.kind)];
  const double ranks = shape.group.ranks();
  const double passes = shape.kind == hw::CollectiveKind::all_reduce ? 2 : 1;
  ++total.calls;
  total.bytes += shape.bytes;
  total.wire_bytes += Bytes(static_cast<double>(shape.bytes) * passes * (ranks - 1) / ranks);
}

void count_launch(const hw::KernelShape& shape, bool recompute, Counts& counts) {
  const Flops flops = hw::executed_flops(shape);
  ++counts.launches;
  counts.executed += flops;
  if (recompute) counts.recomputed += flops;
  counts.dram += hw::dram_bytes(shape);
}

/// Batched GEMMs are the score and context products of unfused attention; they run over all pairs.
bool is_attention(const hw::KernelShape& shape) {
  const bool fused = shape.kind == hw::KernelKind::attention_forward || shape.kind == hw::KernelKind::attention_backward;
  return fused || (shape.kind == hw::KernelKind::gemm && shape.batch > 1);
}

Flops conventional_flops(hw::KernelShape shape, FlopsConvention convention) {
  if (!is_attention(shape)) return hw::executed_flops(shape);
  shape.causal = shape.kind != hw::KernelKind::gemm;
  const Flops all = hw::executed_flops(shape), full = shape.causal ? 2.0 * all : all;
  switch (convention) {
    case FlopsConvention::full_attention: return full;
    case FlopsConvention::causal_attention: return 0.5 * full;
    case FlopsConvention::six_p: break;
  }
  return Flops(0);
}

}  // namespace

Counts count(const Program& program, Range range) {
  Counts counts;
  RecomputeDepth recompute;
  for (const Op& op : program.slice(range)) {
    recompute.visit(program, op);
    const auto work = static_cast<std::size_t>(op.work);
    switch (op.kind) {
      case OpKind::launch:
        count_launch(program.kernels[op.id].shape, recompute.inside(), counts);
        ++counts.host_work[work];
        break;
      case OpKind::collective:
        count_collective(program.collectives[op.id].shape, counts);
        ++counts.host_work[static_cast<std::size_t>(hw::HostWork::collective_call)];
        break;
      case OpKind::record: ++counts.host_work[static_cast<std::size_t>(hw::HostWork::event_record)]; break;
      case OpKind::wait: ++counts.host_work[static_cast<std::size_t>(hw::HostWork::stream_wait)]; break;
      case OpKind::alloc: ++counts.allocations; break;
      case OpKind::free: ++counts.frees; break;
      case OpKind::host_work: counts.host_work[work] += op.count; break;
      case OpKind::host_wait: ++counts.host_waits; break;
      case OpKind::next_batch: ++counts.batches; break;
      case OpKind::record_stream:
      case OpKind::mark: break;
    }
  }
  return counts;
}

Flops recomputed_flops(const Program& program, Range range, FlopsConvention convention) {
  Flops total;
  RecomputeDepth recompute;
  for (const Op& op : program.slice(range)) {
    recompute.visit(program, op);
    if (op.kind == OpKind::launch && recompute.inside()) total += conventional_flops(program.kernels[op.id].shape, convention);
  }
  return total;
}

namespace {

/// Sum over the blocks of the positions that count for a token: s, and with a window twice what the causal band holds. A block without a backward does a third of the work.
double attended_positions(const ModelShape& model, std::int64_t seq_len) {
  double sum = 0;
  for (std::int64_t block = 0; block < model.layers; ++block) {
    const hw::KernelShape shape{.kind = hw::KernelKind::attention_forward, .causal = true, .m = seq_len, .window = window_of(model, block, seq_len)};
    sum += 2 * hw::attended_share(shape) * static_cast<double>(seq_len) * (block < blocks_without_backward(model) ? 1.0 / 3 : 1.0);
  }
  return sum;
}

/// Parameters without a gradient, as products count them: where parts are frozen the embedding, a table, is none of them.
std::int64_t frozen_parameters(const ModelShape& model) {
  if (model.lora_rank > 0) return parameters(model) - trained_parameters(model);
  const std::int64_t head = model.tied_embeddings ? root_parameters(model) : model.vocab * model.hidden;
  return model.frozen_blocks * parameters_per_block(model) + (model.frozen_head ? head : 0);
}

}  // namespace

Flops model_flops_per_token(const ModelShape& model, std::int64_t parameters, std::int64_t seq_len, FlopsConvention convention) {
  const std::int64_t forward_only = blocks_without_backward(model) * parameters_per_block(model);
  const double dense = 6.0 * static_cast<double>(parameters) - 2.0 * static_cast<double>(frozen_parameters(model) + forward_only);
  const double pairs = attended_positions(model, seq_len) * static_cast<double>(model.heads * model.head_dim);
  switch (convention) {
    case FlopsConvention::full_attention: return Flops(dense + 12.0 * pairs);
    case FlopsConvention::causal_attention: return Flops(dense + 6.0 * pairs);
    case FlopsConvention::six_p: break;
  }
  return Flops(dense);
}

const char* name(FlopsConvention convention) {
  static constexpr const char* kNames[] = {"full_attention", "causal_attention", "6p"};
  return kNames[static_cast<std::size_t>(convention)];
}

const char* name(hw::HostWork work) {
  static constexpr const char* kNames[] = {"none",
                                           "op_forward",
                                           "op_backward",
                                           "op_compiled",
                                           "op_optimizer",
                                           "extra_launch",
                                           "collective_call",
                                           "fsdp_pre_forward",
                                           "fsdp_post_forward",
                                           "fsdp_pre_backward",
                                           "fsdp_post_backward",
                                           "fsdp_root_pre_forward",
                                           "fsdp_final_callback",
                                           "views_unsharded",
                                           "views_sharded",
                                           "event_record",
                                           "stream_wait",
                                           "allocation",
                                           "step_begin",
                                           "fsdp2_pre_forward",
                                           "fsdp2_post_forward",
                                           "fsdp2_pre_backward",
                                           "fsdp2_post_backward",
                                           "fsdp2_root_pre_forward",
                                           "fsdp2_final_callback",
                                           "dtensor_dispatch",
                                           "ddp_pre_forward",
                                           "ddp_final_callback",
                                           "ddp_gradient_hook",
                                           "zero_gradient_hook",
                                           "zero_reduction",
                                           "zero_pre_module",
                                           "zero_post_module",
                                           "zero_backward_epilogue",
                                           "zero_step",
                                           "cpu_adam",
                                           "cpu_adam_by_tensor",
                                           "cpu_pass",
                                           "op_megatron_forward",
                                           "op_megatron_backward"};
  static_assert(std::size(kNames) == hw::kHostWorkKinds);
  return kNames[static_cast<std::size_t>(work)];
}

}  // namespace stepcast::program
