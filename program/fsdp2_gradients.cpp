// The gradient path of FSDP2: from the gradients of the parameters through the reduce-scatter to the accumulated shards. docs/fsdp2.md, "Gradients".
#include <algorithm>
#include <string>

#include "program/fsdp2.hpp"
#include "program/host_copies.hpp"

namespace stepcast::program {

/// Buffers of the gradients of a group's parameters, and those that keep them over micro-batches in the reduction type.
void Fsdp2::collect_gradients(Index i) {
  gradients_.clear();
  accumulated_.clear();
  const Program& program = builder_.program();
  const auto add = [&](std::span<const BufferId> buffers, auto belongs) {
    for (const BufferId buffer : buffers) {
      if (belongs(program.buffers[buffer].label)) gradients_.push_back(buffer);
    }
  };
  const auto any = [](const std::string&) { return true; };
  const auto of_positions = [](const std::string& label) { return label.find(".positions.") != std::string::npos; };
  const Unit& u = unit(i);
  for (std::int64_t b = 0; b < u.block_count; ++b)
    add(work_.block_gradients(u.first_block + b), [&](const std::string& label) { return holds(u, gradient_name(label)); });
  if (u.own_head || (u.root && head_ == kNone)) add(work_.head_gradients(), any);
  if (u.own_embedding) add(work_.embedding_gradients(), [&](const std::string& label) { return !of_positions(label); });
  if (u.root) add(work_.embedding_gradients(), [&](const std::string& label) { return embedding_ == kNone || of_positions(label); });
  if (sync_gradients_ && !group(i).has_accumulated) return;
  const std::int64_t p = hw::bytes_per_element(spec_.precision.param), r = hw::bytes_per_element(spec_.precision.reduce);
  for (const BufferId gradient : gradients_) {
    const std::string label = program.buffers[gradient].label + ".accumulated";
    accumulated_.push_back(builder_.buffer(label, program.buffers[gradient].bytes / p * r, Owner::gradients));
  }
}

/// Adds this micro-batch's gradients to the kept ones. The first are cast to the reduction type; if they have it already they are only renamed: the free and the alloc
/// of one size stand for one tensor, except in a program that is run for real, which copies.
void Fsdp2::accumulate_unsharded(Index i) {
  Fsdp2Group& g = group(i);
  const bool moves = spec_.precision.param != spec_.precision.reduce || builder_.executable();
  const auto of_gradient = [&](BufferId buffer) { return all_of(buffer, spec_.precision.param); };
  const auto of_kept = [&](BufferId buffer) { return all_of(buffer, spec_.precision.reduce); };
  const auto kernel = [&](const char* op, std::int64_t read, std::int64_t write) {
    return builder_.kernel({.kind = hw::KernelKind::memory_bound, .read_bytes = read, .write_bytes = write}, op, "vectorized_elementwise_kernel");
  };
  for (std::size_t t = 0; t < gradients_.size(); ++t) {
    const BufferId gradient = gradients_[t], kept = accumulated_[t];
    const std::int64_t bytes = builder_.program().buffers[gradient].bytes, kept_bytes = builder_.program().buffers[kept].bytes;
    if (!g.has_accumulated && moves) {
      builder_.alloc(kept, Stream::compute);
      extra(kernel("aten::to accumulated gradient", bytes, kept_bytes), Stream::compute, {in(gradient), out(kept)});
      builder_.computes([&] { return copy_call(of_gradient(gradient), of_kept(kept)); });
    }
    if (g.has_accumulated) {
      extra(kernel("aten::add_ accumulated gradient", bytes + kept_bytes, kept_bytes), Stream::compute, {inout(kept), in(gradient)});
      builder_.computes([&] { return add_call(of_kept(kept), of_gradient(gradient)); });
    }
    builder_.free(gradient);
    if (!g.has_accumulated && !moves) builder_.alloc(kept, Stream::compute);
  }
  g.has_accumulated = true;
}

/// At most one reduce-scatter's input waits: compute waits for it before it fills the next one.
void Fsdp2::wait_for_outstanding() {
  if (outstanding_ == kNone) return;
  builder_.wait(Stream::compute, group(outstanding_).reduced);
  builder_.free(group(outstanding_).reduce_input);
  outstanding_ = kNone;
}

Part Fsdp2::all_of(BufferId buffer, hw::Dtype dtype) const {
  return part(buffer, dtype, builder_.program().buffers[buffer].bytes / hw::bytes_per_element(dtype));
}

/// Rank by rank, each gradient's rows of that rank; padding is zero.
Call Fsdp2::chunks(Index i, const std::vector<BufferId>& gradients) {
  const hw::Dtype from = group(i).has_accumulated ? spec_.precision.reduce : spec_.precision.param, to = spec_.precision.reduce;
  const std::int64_t shard = unit(i).flat.shard;
  Call call{Function::pack, {whole_part(i, group(i).reduce_input, to)}, {}};
  for (const BufferId gradient : gradients) {
    const ParameterEntry& e = entry_of_gradient(unit(i), builder_.program().buffers[gradient].label);
    for (std::int64_t begin = 0, rank = 0; begin < e.elements; begin += e.shard, ++rank) {
      const std::int64_t count = std::min(e.shard, e.elements - begin);
      call.parts.push_back(part(gradient, from, count, begin));
      call.parts.push_back(part(group(i).reduce_input, to, count, rank * shard + e.place));
    }
  }
  return call;
}

/// foreach_reduce.
void Fsdp2::reduce(Index i) {
  Fsdp2Group& g = group(i);
  const std::vector<BufferId>& gradients = g.has_accumulated ? accumulated_ : gradients_;
  builder_.alloc(g.reduce_input, Stream::compute);
  std::vector<Operand> operands;
  std::transform(gradients.begin(), gradients.end(), std::back_inserter(operands), in);
  operands.push_back(out(g.reduce_input));
  extra(g.chunk_cat, Stream::compute, operands);
  builder_.computes([&] { return chunks(i, gradients); });
  for (const BufferId gradient : gradients) builder_.free(gradient);
  g.has_accumulated = false;
  const bool as_it_is = spec_.precision.reduce == spec_.precision.master && !g.has_sharded_grad;
  const BufferId output = as_it_is ? unit(i).sharded_grad : g.reduce_output;
  stream_wait(Stream::reduce_scatter, Stream::compute);
  reduce_scatter(i, output);
  if (replicated()) all_reduce(i, output);
  finish_reduction(i, output, replicated() ? Stream::all_reduce : Stream::reduce_scatter);
  outstanding_ = i;
}

void Fsdp2::reduce_scatter(Index i, BufferId output) {
  const Fsdp2Group& g = group(i);
  builder_.alloc(output, Stream::reduce_scatter);
  const bool divides = spec_.precision.reduce == hw::Dtype::fp16;
  if (divides && divide_.pre > 1) extra(g.pre_divide, Stream::reduce_scatter, {inout(g.reduce_input)});
  if (ranks_.shard.ranks() > 1) builder_.collective(g.reduce_scatter, Stream::reduce_scatter, {in(g.reduce_input), out(output)});
  else {
    extra(g.copy_reduced, Stream::reduce_scatter, {in(g.reduce_input), out(output)});
    builder_.computes([&] { return copy_call(shard_part(i, g.reduce_input, spec_.precision.reduce), shard_part(i, output, spec_.precision.reduce)); });
  }
  builder_.record(g.reduced, Stream::reduce_scatter);
}

void Fsdp2::all_reduce(Index i, BufferId output) {
  stream_wait(Stream::all_reduce, Stream::reduce_scatter);
  builder_.collective(group(i).all_reduce, Stream::all_reduce, {inout(output)});
}

/// On the stream of the last collective: division, cast to the master type, accumulation. Where that is not the stream whose pool the reduced shard came from, a
/// reference keeps it until the end of the backward.
void Fsdp2::finish_reduction(Index i, BufferId output, Stream stream) {
  Fsdp2Group& g = group(i);
  const Unit& u = unit(i);
  const bool casts_back = spec_.precision.reduce != spec_.precision.master;
  if (spec_.precision.reduce == hw::Dtype::fp16 && divide_.post > 1) extra(g.post_divide, stream, {inout(output)});
  BufferId result = output;
  if (casts_back) {
    result = g.has_sharded_grad ? u.new_sharded_grad : u.sharded_grad;
    builder_.alloc(result, stream);
    extra(g.cast_to_master, stream, {in(output), out(result)});
    builder_.computes([&] { return copy_call(shard_part(i, output, spec_.precision.reduce), shard_part(i, result, spec_.precision.master)); });
  }
  if (g.has_sharded_grad) {
    extra(g.accumulate, stream, {inout(u.sharded_grad), in(result)});
    builder_.computes([&] { return add_call(shard_part(i, u.sharded_grad, spec_.precision.master), shard_part(i, result, spec_.precision.master)); });
    if (casts_back) builder_.free(result);
  }
  g.has_sharded_grad = !offloaded() && !optimizer_in_backward_;
  if (optimizer_in_backward_) step_now(i, casts_back ? stream : Stream::reduce_scatter, stream);
  if (offloaded()) send_to_host(i, result, casts_back ? stream : Stream::reduce_scatter, stream);
  builder_.record(g.finished, stream);
  if (offloaded() && micro_batch_ > 0 && !spec_.policy.no_sync) {  // the sum is formed on the host, behind a copy that blocks
    builder_.host_wait(g.finished, WaitReason::synchronize);
    builder_.host_work(hw::HostWork::cpu_pass, mebi_elements(u.flat.shard));
  }
  g.unfinished = true;
  g.holds_reduce_output = output == g.reduce_output && stream != Stream::reduce_scatter;
  if (output == g.reduce_output && stream == Stream::reduce_scatter) builder_.free(output);
}

/// foreach_reduce runs hooks of parameters (register_post_accumulate_grad_hook) on the stream of the reduction, which is current there: the optimizer of one rank's shards has a
/// stream and a pool of its own.
void Fsdp2::name_steps() {
  optimizer_in_backward_.emplace(spec_, builder_, replicated() ? Stream::all_reduce : Stream::reduce_scatter);
  std::size_t steps = 0;
  for (Index i = 0; i < wrapped_.groups.size(); ++i) {
    first_step_.push_back(steps);
    for (std::size_t t = 0; t < group(i).trained.size(); ++t, ++steps) {
      const TrainedShard& shard = group(i).trained[t];
      const std::string name = unit(i).name + "." + std::to_string(t) + "." + shard.name;  // a group may hold several blocks
      optimizer_in_backward_->add(name, unit(i), shard.begin, part(unit(i).sharded_grad, spec_.precision.master, shard.count, shard.gradient_begin));
    }
  }
}

/// The gradients of a group are parts of one tensor, which goes with the last of them; one from another stream's pool is kept until the end of the backward.
void Fsdp2::step_now(Index i, Stream pool, Stream stream) {
  for (std::size_t t = 0; t < group(i).trained.size(); ++t) optimizer_in_backward_->step(first_step_[i] + t);
  if (pool == stream) builder_.free(unit(i).sharded_grad);
  else group(i).holds_gradient = true;
}

/// Parameter by parameter. A gradient from another stream's pool is kept until the end of the backward.
void Fsdp2::send_to_host(Index i, BufferId gradient, Stream pool, Stream stream) {
  for (std::uint32_t t = 0; t < unit(i).trained_tensors; ++t) extra(group(i).send, stream, {in(gradient)});
  if (gradient == group(i).reduce_output) return;  // given back with it
  if (pool == stream) builder_.free(gradient);
  else group(i).holds_gradient = true;
}

/// set_to_none gives the gradients of the step before back; otherwise they are zeroed and added to.
void Fsdp2::zero_grad() {
  for (Index i = 0; i < wrapped_.groups.size(); ++i) {
    if (!group(i).has_sharded_grad) continue;
    if (!spec_.optimizer.zero_grad_set_to_none) {
      extra(unit(i).zero, Stream::compute, {out(unit(i).sharded_grad)});
      builder_.computes([&] { return zero_call(shard_part(i, unit(i).sharded_grad, spec_.precision.master)); });
      continue;
    }
    builder_.free(unit(i).sharded_grad);
    group(i).has_sharded_grad = false;
  }
}

}  // namespace stepcast::program
