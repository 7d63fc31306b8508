// The gradient path of FSDP1: from the gradients of the parameters to the accumulated shard in the master type. docs/fsdp1.md, "Gradients".
#include <algorithm>
#include <iterator>
#include <vector>

#include "program/fsdp1.hpp"

namespace stepcast::program {

/// Backward of the split of the flat parameter into views, and AccumulateGrad: it takes the concatenation over or adds it to the kept gradient.
void Fsdp1::accumulate_flat_gradient(Unit& unit) {
  if (scheduled_only() || unit.trained_shard == 0) return;
  std::vector<Operand> operands;
  const auto add = [&](std::span<const BufferId> gradients) { std::transform(gradients.begin(), gradients.end(), std::back_inserter(operands), in); };
  if (unit.root && unit.holds_ends) add(work_.root_gradients());
  if (unit.own_head) add(work_.head_gradients());
  if (unit.own_embedding) add(work_.embedding_gradients());
  for (std::int64_t i = 0; i < unit.block_count; ++i) {
    for (const BufferId gradient : work_.block_gradients(unit.first_block + i)) {
      if (holds(unit, gradient_name(builder_.program().buffers[gradient].label))) operands.push_back(in(gradient));
    }
  }
  const std::size_t parts = operands.size();
  const bool into_reduced = !types_.sharded && !types_.gradient_in_place && unit.has_sharded_grad;  // NO_SHARD adds to what was reduced before
  const BufferId target = unit.has_flat_grad || into_reduced ? unit.next_flat_grad : unit.flat_grad;
  operands.push_back(out(target));
  builder_.alloc(target, Stream::compute);
  builder_.launch(unit.concat, Stream::compute, hw::HostWork::op_backward, operands);
  builder_.computes([&] { return concatenation(unit, std::span(operands).first(parts), target); });
  for (std::size_t i = 0; i < parts; ++i) builder_.free(operands[i].buffer);
  if (into_reduced) {
    extra(unit.accumulate_into_master, Stream::compute, hw::HostWork::op_backward, {inout(unit.sharded_grad), in(unit.next_flat_grad)});
    builder_.computes([&] { return add_call(master_part(unit, unit.sharded_grad), flat_part(unit, unit.next_flat_grad)); });
    builder_.free(unit.next_flat_grad);
    return;
  }
  if (unit.has_flat_grad) {
    extra(unit.accumulate_flat, Stream::compute, hw::HostWork::op_backward, {inout(unit.flat_grad), in(unit.next_flat_grad)});
    builder_.computes([&] { return add_call(flat_part(unit, unit.flat_grad), flat_part(unit, unit.next_flat_grad)); });
    builder_.free(unit.next_flat_grad);
  }
  unit.has_flat_grad = true;
}

/// Each gradient to its place; what is left between them is zero.
Call Fsdp1::concatenation(const Unit& unit, std::span<const Operand> gradients, BufferId target) const {
  Call call{Function::pack, {flat_part(unit, target)}, {}};
  for (const Operand& gradient : gradients) {
    const ParameterEntry& entry = entry_of_gradient(unit, builder_.program().buffers[gradient.buffer].label);
    call.parts.push_back(part(gradient.buffer, spec_.precision.param, entry.elements));
    call.parts.push_back(part(target, spec_.precision.param, entry.elements, entry.begin));
  }
  return call;
}

namespace {

constexpr Stream kPost = Stream::post_backward;
constexpr hw::HostWork kAfterBackward = hw::HostWork::op_backward;

}  // namespace

/// On the post-backward stream, under hybrid sharding from the all-reduce on on its own: from the unsharded gradient to the sharded one in the master type.
void Fsdp1::reduce_gradient(Unit& unit) {
  const Stream stream = hybrid() ? Stream::all_reduce : kPost;
  const BufferId result = unit.has_sharded_grad ? unit.new_sharded_grad : unit.sharded_grad;
  const BufferId shard = reduce_scatter(unit);
  if (types_.cast_to_master) {
    builder_.alloc(result, stream);
    extra(unit.cast_to_master, stream, kAfterBackward, {in(shard), out(result)});
    builder_.computes([&] { return copy_call(reduced_part(unit, shard), master_part(unit, result)); });
    builder_.free(shard);
  }
  if (unit.has_sharded_grad) {
    extra(unit.accumulate, stream, kAfterBackward, {inout(unit.sharded_grad), in(result)});
    builder_.computes([&] { return add_call(master_part(unit, unit.sharded_grad), master_part(unit, result)); });
    builder_.free(result);
  }
  unit.has_sharded_grad = !types_.offloaded;
  if (types_.offloaded) {
    extra(unit.send_gradient, stream, kAfterBackward, {in(result)});
    if (result == shard && stream != kPost) builder_.record_stream(result, stream);
    builder_.free(result);
  }
  builder_.record_stream(unit.flat_grad, kPost);
  builder_.free(unit.flat_grad);
  unit.has_flat_grad = false;
}

/// Returns the buffer that holds the reduced shard.
BufferId Fsdp1::reduce_scatter(Unit& unit) {
  if (types_.cast_to_reduce) {
    builder_.alloc(unit.reduce_grad, kPost);
    extra(unit.cast_to_reduce, kPost, kAfterBackward, {in(unit.flat_grad), out(unit.reduce_grad)});
    builder_.computes([&] { return copy_call(flat_part(unit, unit.flat_grad), part(unit.reduce_grad, spec_.precision.reduce, unit.flat.elements)); });
  }
  const bool padded = unit.padded_grad != unit.reduce_grad;
  if (padded) {
    builder_.alloc(unit.padded_grad, kPost);
    extra(unit.pad, kPost, kAfterBackward, {in(unit.reduce_grad), out(unit.padded_grad)});
    builder_.computes([&] {
      const auto reduce = spec_.precision.reduce;
      const std::int64_t n = unit.flat.elements;
      return Call{
          Function::pack, {part(unit.padded_grad, reduce, unit.flat.padded()), part(unit.reduce_grad, reduce, n), part(unit.padded_grad, reduce, n)}, {}};
    });
  }
  const BufferId shard = types_.cast_to_master ? unit.reduced : unit.has_sharded_grad ? unit.new_sharded_grad : unit.sharded_grad;
  builder_.alloc(shard, kPost);
  if (divide_.pre > 1) {
    extra(unit.pre_divide, kPost, kAfterBackward, {inout(unit.padded_grad)});
    builder_.computes([&] { return scale_call(part(unit.padded_grad, spec_.precision.reduce, unit.flat.padded()), 1 / divide_.pre); });
  }
  collective(unit.reduce_scatter, kPost, {in(unit.padded_grad), out(shard)});
  if (hybrid()) {  // the next unit's reduce-scatter does not wait for this
    stream_wait(Stream::all_reduce, kPost);
    builder_.record_stream(shard, Stream::all_reduce);
    builder_.collective(unit.all_reduce, Stream::all_reduce, {inout(shard)});
  }
  if (divide_.post > 1) {
    extra(unit.post_divide, hybrid() ? Stream::all_reduce : kPost, kAfterBackward, {inout(shard)});
    builder_.computes([&] { return scale_call(reduced_part(unit, shard), 1 / divide_.post); });
  }
  if (padded) builder_.free(unit.padded_grad);
  if (types_.cast_to_reduce) builder_.free(unit.reduce_grad);
  return shard;
}

/// NO_SHARD, on the post-backward stream: all-reduce of the whole gradient in place, in the reduction's type.
void Fsdp1::all_reduce_gradient(Unit& unit) {
  const bool earlier = unit.has_sharded_grad && !types_.gradient_in_place;
  const BufferId gradient = cast_to_reduce_type(unit);
  if (types_.replicated) {
    const auto divide = [&](KernelId kernel, double factor) {
      if (factor <= 1) return;
      extra(kernel, kPost, kAfterBackward, {inout(gradient)});
      builder_.computes([&] { return scale_call(reduced_part(unit, gradient), 1 / factor); });
    };
    divide(unit.pre_divide, divide_.pre);
    collective(unit.all_reduce, kPost, {inout(gradient)});
    divide(unit.post_divide, divide_.post);
  }
  if (types_.cast_to_master) {
    if (!earlier) builder_.alloc(unit.sharded_grad, kPost);
    extra(unit.cast_to_master, kPost, kAfterBackward, {in(gradient), out(unit.sharded_grad)});
    builder_.computes([&] { return copy_call(reduced_part(unit, gradient), master_part(unit, unit.sharded_grad)); });
    if (gradient != unit.flat_grad) builder_.free(gradient);
  }
  if (types_.gradient_in_place) {
    if (types_.replicated) builder_.record_stream(unit.flat_grad, kPost);
    return;
  }
  unit.has_sharded_grad = true;
  if (earlier) return;
  builder_.record_stream(unit.flat_grad, kPost);
  builder_.free(unit.flat_grad);
  unit.has_flat_grad = false;
}

/// The gradient in the reduction's type: this micro-batch's flat gradient, or the earlier result, in the master type, to which it was added.
BufferId Fsdp1::cast_to_reduce_type(Unit& unit) {
  const BufferId from = unit.has_sharded_grad ? unit.sharded_grad : unit.flat_grad;
  const bool casts = unit.has_sharded_grad ? types_.cast_to_master : types_.cast_to_reduce;
  if (!casts || types_.gradient_in_place) return from;
  const BufferId to = types_.cast_to_master ? unit.reduce_grad : unit.sharded_grad;
  builder_.alloc(to, kPost);
  extra(unit.has_sharded_grad ? unit.cast_master_to_reduce : unit.cast_to_reduce, kPost, kAfterBackward, {in(from), out(to)});
  builder_.computes([&] { return copy_call(unit.has_sharded_grad ? master_part(unit, from) : flat_part(unit, from), reduced_part(unit, to)); });
  return to;
}

/// set_to_none: gives the gradients of the step before back; else they are kept, as zeros.
void Fsdp1::zero_grad() {
  for (Unit& unit : units_) {
    if (!unit.has_sharded_grad && !unit.has_flat_grad) continue;
    if (!spec_.optimizer.zero_grad_set_to_none) {
      extra(unit.zero, Stream::compute, hw::HostWork::op_optimizer, {out(unit.sharded_grad)});
      builder_.computes([&] { return zero_call(master_part(unit, unit.sharded_grad)); });
      continue;
    }
    builder_.free(unit.sharded_grad);
    unit.has_sharded_grad = unit.has_flat_grad = false;
  }
}

}  // namespace stepcast::program
