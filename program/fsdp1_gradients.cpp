// The gradient path of FSDP1: from the gradients of the parameters to the accumulated shard in the master type. docs/fsdp1.md, "Gradients".
#include <algorithm>
#include <iterator>
#include <vector>

#include "program/fsdp1.hpp"

namespace stepcast::program {

/// Backward of the split of the flat parameter into views, and AccumulateGrad: it takes the concatenation over or adds it to the kept gradient.
void Fsdp1::accumulate_flat_gradient(Unit& unit) {
  if (builder_.detail() == Detail::schedule) return;
  std::vector<Operand> operands;
  const auto add = [&](std::span<const BufferId> gradients) { std::transform(gradients.begin(), gradients.end(), std::back_inserter(operands), in); };
  if (unit.root) add(work_.root_gradients());
  for (std::int64_t i = 0; i < unit.block_count; ++i) add(work_.block_gradients(unit.first_block + i));
  const std::size_t parts = operands.size();
  const BufferId target = unit.has_flat_grad ? unit.next_flat_grad : unit.flat_grad;
  operands.push_back(out(target));
  builder_.alloc(target, Stream::compute);
  builder_.launch(unit.concat, Stream::compute, hw::HostWork::op_backward, operands);
  for (std::size_t i = 0; i < parts; ++i) builder_.free(operands[i].buffer);
  if (unit.has_flat_grad) {
    extra(unit.accumulate_flat, Stream::compute, hw::HostWork::op_backward, {inout(unit.flat_grad), in(unit.next_flat_grad)});
    builder_.free(unit.next_flat_grad);
  }
  unit.has_flat_grad = true;
}

/// On the post-backward stream: from the unsharded gradient to the sharded one in the master type.
void Fsdp1::reduce_gradient(Unit& unit) {
  constexpr Stream kPost = Stream::post_backward;
  constexpr hw::HostWork kWork = hw::HostWork::op_backward;
  const BufferId result = unit.has_sharded_grad ? unit.new_sharded_grad : unit.sharded_grad;
  const BufferId shard = types_.sharded ? reduce_scatter(unit) : unit.flat_grad;
  if (types_.cast_to_master) {
    builder_.alloc(result, kPost);
    extra(unit.cast_to_master, kPost, kWork, {in(shard), out(result)});
    if (types_.sharded) builder_.free(shard);
  }
  if (unit.has_sharded_grad) {
    extra(unit.accumulate, kPost, kWork, {inout(unit.sharded_grad), in(result)});
    builder_.free(result);
  }
  unit.has_sharded_grad = true;
  builder_.record_stream(unit.flat_grad, kPost);
  builder_.free(unit.flat_grad);
  unit.has_flat_grad = false;
}

/// Returns the buffer that holds the reduced shard.
BufferId Fsdp1::reduce_scatter(Unit& unit) {
  constexpr Stream kPost = Stream::post_backward;
  constexpr hw::HostWork kWork = hw::HostWork::op_backward;
  if (types_.cast_to_reduce) {
    builder_.alloc(unit.reduce_grad, kPost);
    extra(unit.cast_to_reduce, kPost, kWork, {in(unit.flat_grad), out(unit.reduce_grad)});
  }
  const bool padded = unit.padded_grad != unit.reduce_grad;
  if (padded) {
    builder_.alloc(unit.padded_grad, kPost);
    extra(unit.pad, kPost, kWork, {in(unit.reduce_grad), out(unit.padded_grad)});
  }
  const BufferId shard = types_.cast_to_master ? unit.reduced : unit.has_sharded_grad ? unit.new_sharded_grad : unit.sharded_grad;
  builder_.alloc(shard, kPost);
  if (divide_.pre > 1) extra(unit.pre_divide, kPost, kWork, {inout(unit.padded_grad)});
  builder_.collective(unit.reduce_scatter, kPost, {in(unit.padded_grad), out(shard)});
  if (divide_.post > 1) extra(unit.post_divide, kPost, kWork, {inout(shard)});
  if (padded) builder_.free(unit.padded_grad);
  if (types_.cast_to_reduce) builder_.free(unit.reduce_grad);
  return shard;
}

/// set_to_none: gives the gradients of the step before back.
void Fsdp1::zero_grad() {
  for (Unit& unit : units_) {
    if (unit.has_sharded_grad || unit.has_flat_grad) builder_.free(unit.sharded_grad);
    unit.has_sharded_grad = unit.has_flat_grad = false;
  }
}

}  // namespace stepcast::program
