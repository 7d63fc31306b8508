// The step, the hooks and the all-gather path of FSDP2. Read beside PyTorch torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py.
#include "program/fsdp2.hpp"

#include <algorithm>
#include <string>

namespace stepcast::program {
namespace {

constexpr Stream kCopyIn = Stream::copy_in, kGather = Stream::all_gather;

}  // namespace

Fsdp2::Fsdp2(const StepSpec& spec, Builder& builder, Fsdp2Groups& wrapped, Work& work)
    : TrainingStep(spec, builder, work),
      wrapped_(wrapped),
      ranks_(groups_of(spec)),
      divide_(divide_factors(spec.world.ranks())),
      blocks_in_root_(!wrapping_of(spec).blocks),
      inner_uses_(builder) {
  for (Index i = 0; i < wrapped.units.size(); ++i) {
    const Unit& u = wrapped.units[i];
    (u.root ? root_ : u.own_embedding ? embedding_ : u.own_head ? head_ : blocks_.emplace_back()) = i;
  }
  for (const Unit& u : wrapped.units) name_unit(u.name, u.index);
  name_unit("root", -1);
  watch_inner_units();
  if (spec.optimizer.in_backward) name_steps();
}

void Fsdp2::forward() {
  open(root_);
  root_pre_forward();
  pre_forward(root_);
  pre_forward(embedding_);
  work_.embedding_forward();
  post_forward(embedding_);
  if (blocks_in_root_) blocks_forward(0, spec_.model.layers);
  close(root_);
  for (const Index i : blocks_) {
    if (!unit(i).inner.empty()) continue;
    open(i);
    pre_forward(i);
    blocks_forward(unit(i).first_block, unit(i).block_count);
    post_forward(i);
    close(i);
  }
  open(root_);
  pre_forward(head_);
  work_.head_forward();
  post_forward(head_);
  post_forward(root_);
  end_of_forward();
  close(root_);
}

void Fsdp2::backward() {
  open(root_);
  pre_backward(root_);
  pre_backward(head_);
  work_.head_backward();
  if (head_ != kNone) post_backward(head_);
  close(root_);
  for (auto i = blocks_.rbegin(); i != blocks_.rend(); ++i) {
    if (!unit(*i).inner.empty() || !has_backward(*i)) continue;
    open(*i);
    pre_backward(*i);
    blocks_backward(unit(*i).first_block, unit(*i).block_count);
    post_backward(*i);
    close(*i);
  }
  open(root_);
  if (blocks_in_root_) blocks_backward(0, spec_.model.layers);
  if (embedding_ != kNone && has_backward(embedding_)) pre_backward(embedding_);
  work_.embedding_backward();
  final_callback();
  close(root_);
}

// --- hooks -------------------------------------------------------------------------------------------------------------------------------------------

void Fsdp2::root_pre_forward() {
  builder_.host_work(hw::HostWork::fsdp2_root_pre_forward);
  stream_wait(kCopyIn, Stream::compute);  // the optimizer must be done
  stream_wait(kGather, Stream::compute);
  work_.copy_inputs();
}

void Fsdp2::pre_forward(Index i) {
  if (i == kNone) return;
  builder_.host_work(hw::HostWork::fsdp2_pre_forward);
  unshard(i);
  wait_for_unshard(i);
  prefetch_forward(i);
}

void Fsdp2::post_forward(Index i) {
  if (i == kNone) return;
  builder_.host_work(hw::HostWork::fsdp2_post_forward);
  if (group(i).reshards_after_forward) reshard_post_forward(i);
  post_forward_order_.push_back(i);
}

/// The last group's staging buffer has no next group to give it back.
void Fsdp2::end_of_forward() {
  if (held_ != kNone) release_staging(group(held_));
  held_ = kNone;
}

void Fsdp2::pre_backward(Index i) {
  if (i == kNone) return;
  builder_.host_work(hw::HostWork::fsdp2_pre_backward);
  unshard(i);
  wait_for_unshard(i);
  prefetch_backward(i);
}

void Fsdp2::post_backward(Index i) {
  Fsdp2Group& g = group(i);
  builder_.host_work(hw::HostWork::fsdp2_post_backward);
  if (unit(i).trained_shard == 0) return to_sharded(i);
  collect_gradients(i);
  if (!sync_gradients_) {
    to_sharded(i);
    return accumulate_unsharded(i);
  }
  if (g.has_accumulated) accumulate_unsharded(i);
  to_sharded(i);
  wait_for_outstanding();
  reduce(i);
}

/// Groups whose inputs need no gradient (token ids) have not run their post-backward: the embedding's own, then the root. Then compute waits for all reductions.
void Fsdp2::final_callback() {
  builder_.host_work(hw::HostWork::fsdp2_final_callback);
  for (const Index i : {embedding_, root_}) {
    if (i != kNone && has_backward(i)) post_backward(i);
  }
  for (Index i = 0; i < wrapped_.groups.size(); ++i) {
    Fsdp2Group& g = group(i);
    end_mistargeted(i);
    if (g.unfinished) builder_.wait(Stream::compute, g.finished);
    if (g.holds_reduce_output) builder_.free(g.reduce_output);
    if (g.unfinished && offloaded()) builder_.host_wait(g.finished, WaitReason::synchronize);  // the gradients are there
    if (g.holds_gradient) builder_.free(unit(i).sharded_grad);
    g.unfinished = g.holds_reduce_output = g.holds_gradient = false;
  }
  wait_for_outstanding();
  post_forward_order_.clear();
}

/// The lists of set_modules_to_forward_prefetch: the next blocks, in the pre-forward of each block.
void Fsdp2::prefetch_forward(Index i) {
  const auto here = std::find(blocks_.begin(), blocks_.end(), i);
  if (here == blocks_.end()) return;
  const auto depth = std::min<std::ptrdiff_t>(spec_.policy.forward_prefetch_depth, blocks_.end() - here - 1);
  for (std::ptrdiff_t d = 1; d <= depth; ++d) unshard(here[d]);
}

/// Without a list: the group whose forward ended before this one's. With set_modules_to_backward_prefetch: the blocks before this one.
void Fsdp2::prefetch_backward(Index i) {
  const auto block = std::find(blocks_.begin(), blocks_.end(), i);
  if (spec_.policy.backward_prefetch_depth > 1 && block != blocks_.end() && block != blocks_.begin()) {
    const auto depth = std::min<std::ptrdiff_t>(spec_.policy.backward_prefetch_depth, block - blocks_.begin());
    for (std::ptrdiff_t d = 1; d <= depth; ++d) unshard(*(block - d));
    return;
  }
  const auto here = std::find(post_forward_order_.begin(), post_forward_order_.end(), i);
  if (here != post_forward_order_.end() && here != post_forward_order_.begin()) unshard(*(here - 1));
}

// --- all-gather --------------------------------------------------------------------------------------------------------------------------------------

void Fsdp2::unshard(Index i) {
  Fsdp2Group& g = group(i);
  if (g.pending || g.state == Fsdp2Group::State::unsharded || (in_backward_ && !g.unshards_in_backward)) return;
  const bool sub = g.state == Fsdp2Group::State::sharded_post_forward;
  if (sub) {  // the kept parts were written on compute
    builder_.wait(kCopyIn, g.resharded);
    builder_.wait(kGather, g.resharded);
  }
  copy_in(i);
  stream_wait(kGather, kCopyIn);
  if (ranks_.shard.ranks() > 1) builder_.collective(sub ? g.all_gather_sub : g.all_gather, kGather, {inout(g.staging)});
  builder_.record(g.gathered, kGather);
  g.pending = true;
}

/// This rank's shards, fetched from the host if they live there and cast for compute, go to their place in the staging buffer.
void Fsdp2::copy_in(Index i) {
  const Fsdp2Group& g = group(i);
  if (g.state == Fsdp2Group::State::sharded_post_forward) {
    builder_.alloc(g.staging, kCopyIn);
    extra(g.copy_in_sub, kCopyIn, {in(g.post_forward_shard), out(g.staging)});
    return builder_.computes([&] {
      const Part to = staging_part(i, gathering_ranks(i));
      return copy_call(part(g.post_forward_shard, to.dtype, to.count), to);
    });
  }
  if (offloaded()) {
    builder_.alloc(g.fetched_shard, kCopyIn);
    for (std::uint32_t t = 0; t < unit(i).tensors; ++t) extra(g.fetch, kCopyIn, {inout(g.fetched_shard)});
  }
  if (casts()) {
    builder_.alloc(g.cast_shard, kCopyIn);
    extra(g.cast, kCopyIn, {in(offloaded() ? g.fetched_shard : unit(i).master), out(g.cast_shard)});
    builder_.computes([&] { return copy_call(shard_part(i, unit(i).master, spec_.precision.master), shard_part(i, g.cast_shard, spec_.precision.param)); });
    for (std::uint32_t t = 0; t < g.fp8_weights; ++t) extra(g.cast_fp8, kCopyIn, {in(unit(i).master), inout(g.cast_shard)});
  }
  builder_.alloc(g.staging, kCopyIn);
  extra(g.copy_in, kCopyIn, {in(g.cast_shard), out(g.staging)});
  builder_.computes([&] { return copy_call(shard_part(i, g.cast_shard, spec_.precision.param), staging_part(i, unit(i).flat.ranks)); });
  if (casts()) builder_.free(g.cast_shard);
  if (offloaded()) builder_.free(g.fetched_shard);
}

/// In the forward the staging buffer is kept until the next group comes, so that its copy-in and all-gather need not wait for this copy-out.
void Fsdp2::wait_for_unshard(Index i, bool in_forward) {
  Fsdp2Group& g = group(i);
  if (!g.pending) return;
  g.pending = false;
  if (in_forward && held_ != kNone) release_staging(group(held_));
  copy_out(i);
  if (in_forward) held_ = i;
  else release_staging(g);
}

void Fsdp2::copy_out(Index i) {
  Fsdp2Group& g = group(i);
  builder_.wait(Stream::compute, g.gathered);
  std::vector<Operand> operands{in(g.staging)};
  for (const BufferId storage : g.storages) {
    builder_.alloc(storage, Stream::compute);
    operands.push_back(out(storage));
  }
  extra(g.copy_out, Stream::compute, operands);
  builder_.computes([&] { return copied_out(i); });
  builder_.host_work(hw::HostWork::views_unsharded, unit(i).tensors);
  if (g.state == Fsdp2Group::State::sharded_post_forward) builder_.free(g.post_forward_shard);
  g.state = Fsdp2Group::State::unsharded;
  builder_.record(g.copied_out, Stream::compute);
}

/// Both streams wait for the copy-out, then the buffer can be reused on the copy-in stream.
void Fsdp2::release_staging(const Fsdp2Group& g) {
  builder_.wait(kCopyIn, g.copied_out);
  builder_.wait(kGather, g.copied_out);
  builder_.free(g.staging);
}

void Fsdp2::reshard_post_forward(Index i) {
  Fsdp2Group& g = group(i);
  if (spec_.policy.reshard_after_forward == kReshardAfterForward) return to_sharded(i);
  builder_.alloc(g.post_forward_shard, Stream::compute);
  if (!scheduled_only()) {
    for (std::size_t t = 0; t < g.storages.size(); ++t) {
      extra(g.clones[t], Stream::compute, {in(g.storages[t]), inout(g.post_forward_shard)});
      builder_.computes([&] { return cloned(i, t); });
    }
  }
  free_storages(g);
  builder_.host_work(hw::HostWork::views_sharded, unit(i).tensors);
  g.state = Fsdp2Group::State::sharded_post_forward;
  builder_.record(g.resharded, Stream::compute);
}

void Fsdp2::to_sharded(Index i) {
  Fsdp2Group& g = group(i);
  if (g.state == Fsdp2Group::State::unsharded) free_storages(g);
  if (g.state == Fsdp2Group::State::sharded_post_forward) builder_.free(g.post_forward_shard);
  if (g.state != Fsdp2Group::State::sharded) builder_.host_work(hw::HostWork::views_sharded, unit(i).tensors);
  g.state = Fsdp2Group::State::sharded;
}

/// On the host, at once: later requests of the compute pool are ordered behind the kernels that used them.
void Fsdp2::free_storages(const Fsdp2Group& g) {
  for (const BufferId storage : g.storages) builder_.free(storage);
}

// --- after the optimizer ------------------------------------------------------------------------------------------------------------------------------

void Fsdp2::optimizer() {
  TrainingStep::optimizer();
  if (spec_.precision.fp8_all_gather) find_fp8_scales();
}

/// torchao's precompute_float8_dynamic_scale_for_fsdp: the largest element of each weight, over all shards, from which the scales of the next step's casts follow.
void Fsdp2::find_fp8_scales() {
  std::int64_t weights = 0, elements = 0;
  std::vector<Operand> operands;
  for (Index i = 0; i < wrapped_.groups.size(); ++i) {
    if (group(i).fp8_weights == 0) continue;
    weights += group(i).fp8_weights;
    elements += group(i).fp8_shard;
    operands.push_back(in(unit(i).master));
  }
  const BufferId maxima = builder_.buffer("float8.maxima", 4 * weights, Owner::workspace);
  builder_.alloc(maxima, Stream::compute);
  operands.push_back(out(maxima));
  const auto kernel = [&](const char* op, std::int64_t bytes) {
    return builder_.kernel({.kind = hw::KernelKind::memory_bound, .memory = hw::MemoryClass::optimizer, .read_bytes = bytes, .write_bytes = 4 * weights}, op,
                           "multi_tensor_apply_kernel");
  };
  extra(kernel("aten::_foreach_norm largest element", hw::bytes_per_element(spec_.precision.master) * elements), Stream::compute, operands);
  if (ranks_.shard.ranks() > 1) {
    const hw::CollectiveShape shape{hw::CollectiveKind::all_reduce, hw::Dtype::fp32, 4 * weights, ranks_.shard};
    builder_.collective(builder_.collective({shape, Communicator::shard, true, "all_reduce float8 maxima"}), Stream::compute, {inout(maxima)});
  }
  for (const char* op : {"aten::clamp maxima", "aten::reciprocal maxima", "aten::mul scales"}) extra(kernel(op, 4 * weights), Stream::compute, {inout(maxima)});
  builder_.free(maxima);
}

// --- what the copies compute, for real runs: a group's parameters stand one behind the other in each rank's part of the staging buffer ------------------

Part Fsdp2::staging_part(Index i, std::int64_t ranks) {
  const std::int64_t count = unit(i).flat.padded() / ranks;
  return {group(i).staging, spec_.precision.param, 0, count, count, static_cast<std::int32_t>(ranks)};
}

std::int64_t Fsdp2::gathering_ranks(Index i) {
  return group(i).state == Fsdp2Group::State::sharded_post_forward ? spec_.policy.reshard_after_forward : unit(i).flat.ranks;
}

Call Fsdp2::copied_out(Index i) {
  const std::int64_t ranks = gathering_ranks(i), per_rank = unit(i).flat.ranks / ranks;  // parts of every rank that gathers
  Call call{Function::copy, {}, {}};
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    for (const ParameterEntry& e : unit(i).entries) {
      const std::int64_t count = e.shard * per_rank, begin = (rank * unit(i).flat.shard + e.place) * per_rank;
      call.parts.push_back(part(group(i).staging, spec_.precision.param, count, begin));
      call.parts.push_back(part(e.params, spec_.precision.param, count, rank * count));
    }
  }
  return call;
}

Call Fsdp2::cloned(Index i, std::size_t tensor) {
  const std::int64_t ranks = spec_.policy.reshard_after_forward, per_rank = unit(i).flat.ranks / ranks;
  const ParameterEntry& e = unit(i).entries[tensor];
  const std::int64_t count = e.shard * per_rank;
  return copy_call({e.params, spec_.precision.param, 0, count, count, static_cast<std::int32_t>(ranks)},
                   part(group(i).post_forward_shard, spec_.precision.param, count, e.place * per_rank));
}

// --- common ------------------------------------------------------------------------------------------------------------------------------------------

/// A kernel of FSDP2 itself, launched from Python; fixed-cost mode has none.
void Fsdp2::extra(KernelId kernel, Stream stream, std::span<const Operand> operands) {
  if (!scheduled_only()) builder_.launch(kernel, stream, hw::HostWork::op_forward, operands);
}

}  // namespace stepcast::program
