// The step, the two primitives and the hooks of FSDP1. Read beside PyTorch torch/distributed/fsdp/_runtime_utils.py: the procedures have its names.
#include "program/fsdp1.hpp"

#include <algorithm>

namespace stepcast::program {
namespace {

/// Frees that may be outstanding before the host waits for the oldest: a constant in PyTorch (_limiter_utils.py).
constexpr std::size_t kMaxFreeEvents = 2;

std::string named(std::string_view before, std::string_view what, std::string_view after = {}) {
  std::string text(before);
  return text.append(what).append(after);
}

}  // namespace

Fsdp1::Fsdp1(const StepSpec& spec, Builder& builder, std::vector<Unit>& units, Work& work)
    : TrainingStep(spec, builder, work),
      units_(units),
      blocks_in_root_(!wrapping_of(spec).blocks),
      inner_uses_(builder),
      types_(spec),
      divide_(divide_factors(spec.world.ranks())) {
  for (Unit& unit : units) {
    if (unit.root) root_ = &unit;
    if (unit.own_embedding) embedding_ = &unit;
    if (unit.own_head) head_ = &unit;
    name_unit(unit.name, unit.index);
  }
  for (std::int64_t mb = 0; mb < spec.batch.grad_accum; ++mb) {
    const std::string suffix = spec.batch.grad_accum > 1 ? named(")#", std::to_string(mb)) : ")";
    for (const Unit& unit : units) {
      free_event_ids_.push_back(builder.event(named("F(", unit.name, suffix)));
      free_event_ids_.push_back(builder.event(named("B(", unit.name, suffix)));
    }
  }
  watch_inner_units();
}

Fsdp1::Carried Fsdp1::carried() const {
  return {{free_events_.begin(), free_events_.end()},
          order_recorded_,
          std::any_of(units_.begin(), units_.end(), [](const Unit& unit) { return unit.has_sharded_grad || unit.has_flat_grad; }),
          optimizer_state_};
}

void Fsdp1::forward() {
  open(root_);
  root_pre_forward();
  pre_forward(root_);
  if (embedding_) {
    open(embedding_);
    pre_forward(embedding_);
  }
  work_.embedding_forward();
  if (embedding_) post_forward(embedding_, has_backward(*embedding_));
  if (blocks_in_root_) blocks_forward(0, spec_.model.layers);
  close(embedding_ ? embedding_ : root_);
  for (Unit& unit : units_) {
    if (unit.root || unit.block_count == 0 || !unit.inner.empty()) continue;
    open(&unit);
    pre_forward(&unit);
    blocks_forward(unit.first_block, unit.block_count);
    post_forward(&unit, has_backward(unit) && !recomputes_outside(unit));
    close(&unit);
  }
  open(head_ ? head_ : root_);
  if (head_) pre_forward(head_);
  work_.head_forward();
  if (head_) post_forward(head_);
  post_forward(root_);
  close(head_ ? head_ : root_);
  order_recorded_ = true;
}

void Fsdp1::backward() {
  open(head_ ? head_ : root_);
  pre_backward(root_);
  if (head_) pre_backward(head_);
  work_.head_backward();
  if (head_) {
    accumulate_flat_gradient(*head_);
    post_backward(*head_);
  }
  close(head_ ? head_ : root_);
  for (std::size_t i = units_.size(); i-- > 0;) {
    Unit& unit = units_[i];
    if (unit.root || unit.block_count == 0 || !unit.inner.empty() || !has_backward(unit)) continue;
    open(&unit);
    unit_backward(unit);
    close(&unit);
  }
  Unit* last = embedding_ ? embedding_ : root_;
  open(last);
  if (blocks_in_root_) blocks_backward(0, spec_.model.layers);
  if (root_ && embedding_) {  // the gradients of blocks are its last
    accumulate_flat_gradient(*root_);
    post_backward(*root_);
  }
  if (embedding_ && has_backward(*last)) pre_backward(embedding_);
  work_.embedding_backward();
  if (has_backward(*last)) {
    accumulate_flat_gradient(*last);
    post_backward(*last);
  }
  final_callback();
  close(last);
}

// --- primitives --------------------------------------------------------------------------------------------------------------------------------------

void Fsdp1::unshard(Unit& unit) {
  const bool did_pre_unshard = pre_unshard(unit);
  if (did_pre_unshard) stream_wait(Stream::unshard, Stream::pre_unshard);
  if (spec_.policy.limit_all_gathers) rate_limiter();  // also when no all-gather follows
  if (!unit.unsharded && types_.sharded) all_gather(unit);
  unit.unsharded = true;
  builder_.host_work(hw::HostWork::views_unsharded, unit.tensors);
  if (did_pre_unshard && types_.sharded) {
    builder_.record_stream(unit.low_shard, Stream::unshard);
    builder_.free(unit.low_shard);
  }
}

/// Fetches the shard from the host, if it lives there, and casts it for compute. The cast comes before the limiter, the big allocation after it. One rank alone casts straight into its parameters.
bool Fsdp1::pre_unshard(Unit& unit) {
  if (unit.unsharded || (!types_.mixed && !types_.offloaded)) return false;
  if (types_.offloaded) {
    builder_.alloc(unit.fetched_shard, Stream::pre_unshard);
    extra(unit.fetch_shard, Stream::pre_unshard, hw::HostWork::op_forward, {out(unit.fetched_shard)});
    if (!types_.mixed) return true;
  }
  const BufferId target = types_.sharded ? unit.low_shard : unit.params;
  builder_.alloc(target, Stream::pre_unshard);
  const BufferId shard = types_.offloaded ? unit.fetched_shard : unit.master;
  extra(unit.cast_shard, Stream::pre_unshard, hw::HostWork::op_forward, {in(shard), out(target)});
  builder_.computes([&] { return copy_call(master_part(unit, shard), part(target, spec_.precision.param, unit.flat.shard)); });
  if (types_.offloaded) builder_.free(unit.fetched_shard);
  return true;
}

/// One event at most per call, whatever the length of the queue.
void Fsdp1::rate_limiter() {
  if (free_events_.size() < kMaxFreeEvents) return;
  builder_.host_wait(free_events_.front(), WaitReason::rate_limiter);
  free_events_.pop_front();
}

void Fsdp1::all_gather(Unit& unit) {
  builder_.alloc(unit.params, Stream::unshard);
  collective(unit.all_gather, Stream::unshard, {in(unit.low_shard), out(unit.params)});
}

/// Early releases: c10d runs the collective on a stream of its own, for which the caller's stream waits, and tells the allocator that the tensors are used there.
/// Later ones need no such mention, and then it is the same whether the collective runs there or on the caller's stream.
void Fsdp1::collective(std::uint32_t entry, Stream stream, std::initializer_list<Operand> operands) {
  if (spec_.policy.release != Release::before_2_1) return builder_.collective(entry, stream, operands);
  stream_wait(Stream::nccl, stream);
  builder_.collective(entry, Stream::nccl, operands);
  stream_wait(stream, Stream::nccl);
  for (const Operand& operand : operands) builder_.record_stream(operand.buffer, Stream::nccl);
}

void Fsdp1::reshard(Unit& unit, bool do_free, Freed when) {
  builder_.host_work(hw::HostWork::views_sharded, spec_.policy.use_orig_params ? unit.tensors : 1);
  const bool frees_cast_copy = !types_.sharded && types_.mixed;
  if (do_free || frees_cast_copy) {
    builder_.record_stream(unit.params, Stream::compute);
    builder_.free(unit.params);
    unit.unsharded = unit.prefetched = false;
  }
  if (!do_free) return;
  if (spec_.policy.limit_all_gathers) {
    const EventId event = free_event(unit, when);
    builder_.record(event, Stream::compute);
    free_events_.push_back(event);
  }
}

// --- hooks -------------------------------------------------------------------------------------------------------------------------------------------

void Fsdp1::root_pre_forward() {
  builder_.host_work(hw::HostWork::fsdp_root_pre_forward);
  if (spec_.policy.forward_prefetch) {
    for (Unit& unit : units_) unit.needs_pre_forward_unshard = true;
  }
  stream_wait(Stream::unshard, Stream::compute);  // the optimizer must be done
  stream_wait(Stream::pre_unshard, Stream::compute);
  work_.copy_inputs();
}

/// A root without parameters of its own has hooks that do nothing.
void Fsdp1::pre_forward(Unit* unit) {
  builder_.host_work(hw::HostWork::fsdp_pre_forward);
  if (!unit) return;
  if (!order_recorded_) pre_forward_order_.push_back(position(*unit));
  if (!unit->prefetched) unshard(*unit);
  unit->needs_pre_forward_unshard = false;
  stream_wait(Stream::compute, Stream::unshard);
  if (spec_.policy.forward_prefetch) prefetch_next(*unit);
}

/// Without `grad_mode` (the first forward under reentrant checkpointing) no hook of the backward is installed.
void Fsdp1::post_forward(Unit* unit, bool grad_mode) {
  builder_.host_work(hw::HostWork::fsdp_post_forward);
  if (!unit) return;
  post_forward_order_.push_back(position(*unit));
  reshard(*unit, !unit->root && frees_after_forward(), Freed::in_forward);
  unit->needs_pre_backward_unshard = grad_mode;
  unit->ran_pre_backward = false;
}

void Fsdp1::pre_backward(Unit* unit) {
  if (unit && unit->ran_pre_backward) return;
  builder_.host_work(hw::HostWork::fsdp_pre_backward);
  if (!unit) return;
  if (unit->needs_pre_backward_unshard) {
    if (!unit->prefetched) unshard(*unit);
    stream_wait(Stream::compute, Stream::unshard);
  }
  unit->needs_pre_backward_unshard = false;
  if (spec_.policy.backward_prefetch == BackwardPrefetch::pre) prefetch_previous(*unit);
  unit->ran_pre_backward = true;
}

void Fsdp1::post_backward(Unit& unit) {
  builder_.host_work(hw::HostWork::fsdp_post_backward);
  reshard(unit, types_.sharded && (sync_gradients_ || frees_after_forward()), Freed::in_backward);
  if (spec_.policy.backward_prefetch == BackwardPrefetch::post) prefetch_previous(unit);
  if (!sync_gradients_ || unit.trained_shard == 0) return;  // the unsharded gradient is kept; a frozen unit has none
  stream_wait(Stream::post_backward, Stream::compute);
  if (types_.sharded) reduce_gradient(unit);
  else all_reduce_gradient(unit);
}

/// _catch_all_reshard, for units that ran no hook of the backward.
void Fsdp1::reshard_without_backward() {
  for (Unit& unit : units_) {
    if (unit.unsharded && !has_backward(unit)) reshard(unit, types_.sharded && (sync_gradients_ || frees_after_forward()), Freed::in_backward);
  }
}

void Fsdp1::final_callback() {
  builder_.host_work(hw::HostWork::fsdp_final_callback);
  if (sync_gradients_) stream_wait(Stream::compute, Stream::post_backward);
  if (sync_gradients_ && hybrid()) stream_wait(Stream::compute, Stream::all_reduce);
  if (sync_gradients_ && types_.offloaded) {  // the gradients are there
    const EventId drained = builder_.event("gradients on the host");
    builder_.record(drained, Stream::compute);
    builder_.host_wait(drained, WaitReason::synchronize);
  }
  reshard_without_backward();
  post_forward_order_.clear();
  for (Unit& unit : units_) { unit.prefetched = unit.needs_pre_forward_unshard = unit.needs_pre_backward_unshard = unit.ran_pre_backward = false; }
}

/// The order of the first forward is not known while it runs, so nothing is prefetched in it.
void Fsdp1::prefetch_next(const Unit& unit) {
  const auto here = std::find(pre_forward_order_.begin(), pre_forward_order_.end(), position(unit));
  if (here == pre_forward_order_.end() || here + 1 == pre_forward_order_.end()) return;
  Unit& next = units_[*(here + 1)];
  if (!next.needs_pre_forward_unshard || next.prefetched) return;
  unshard(next);
  next.prefetched = true;
}

void Fsdp1::prefetch_previous(const Unit& unit) {
  const auto here = std::find(post_forward_order_.begin(), post_forward_order_.end(), position(unit));
  if (here == post_forward_order_.end() || here == post_forward_order_.begin()) return;
  Unit& previous = units_[*(here - 1)];
  if (!previous.needs_pre_backward_unshard || previous.prefetched) return;
  unshard(previous);
  previous.prefetched = true;
}

// --- common ------------------------------------------------------------------------------------------------------------------------------------------

void Fsdp1::open(const Unit* unit) {
  if (unit) open_unit(position(*unit));
}

void Fsdp1::close(const Unit* unit) {
  if (unit) close_unit(position(*unit));
}

bool Fsdp1::frees_after_forward() const {
  return types_.sharded && (spec_.policy.sharding == Sharding::full_shard || spec_.policy.sharding == Sharding::hybrid_shard);
}

/// A kernel of FSDP itself; fixed-cost mode has none.
void Fsdp1::extra(KernelId kernel, Stream stream, hw::HostWork work, std::initializer_list<Operand> operands) {
  if (!scheduled_only()) builder_.launch(kernel, stream, work, operands);
}

/// An event that still stands in the queue of the limiter (few units, long queue) must not be recorded again: another one takes its place.
EventId Fsdp1::free_event(const Unit& unit, Freed when) {
  const std::size_t kinds = 2, place = static_cast<std::size_t>(micro_batch_) * units_.size() + position(unit);
  EventId id = free_event_ids_[place * kinds + static_cast<std::size_t>(when)];
  while (std::find(free_events_.begin(), free_events_.end(), id) != free_events_.end()) id = builder_.event(named(builder_.program().events[id].label, "'"));
  return id;
}

}  // namespace stepcast::program
