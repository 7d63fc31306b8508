// Lifetimes from uses, and the emission of plans.
#include "program/blocks/layer.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <unordered_set>

namespace stepcast::program {
namespace {

/// Kernel function as a profiler would name its family.
std::string_view kernel_name(const hw::KernelShape& shape) {
  switch (shape.kind) {
    case hw::KernelKind::gemm: return shape.batch > 1 ? "batched_gemm" : "gemm";
    case hw::KernelKind::attention_forward: return "attention_forward_kernel";
    case hw::KernelKind::attention_backward: return "attention_backward_kernel";
    case hw::KernelKind::fixed: return "fixed";
    case hw::KernelKind::copy_to_device:
    case hw::KernelKind::copy_to_host:
    case hw::KernelKind::memory_bound: break;
  }
  switch (shape.memory) {
    case hw::MemoryClass::elementwise: return "vectorized_elementwise_kernel";
    case hw::MemoryClass::normalization: return "reduce_kernel";
    case hw::MemoryClass::softmax: return "softmax_warp_kernel";
    case hw::MemoryClass::indexing: return "indexing_kernel";
    case hw::MemoryClass::copy: return "copy_kernel";
    case hw::MemoryClass::optimizer: return "multi_tensor_apply_kernel";
    case hw::MemoryClass::tiny: return "elementwise_kernel";
  }
  return "kernel";
}

constexpr BufferId kNoBuffer = ~BufferId{0};

}  // namespace

Layer::Layer(Builder& builder, std::string_view name, LayerMode mode) : builder_(builder), name_(name), mode_(mode) {
  recompute_begin_ = builder.mark(MarkKind::recompute, true, -1, "recompute");
  recompute_end_ = builder.mark(MarkKind::recompute, false, -1, "recompute");
}

Slot Layer::tensor(std::string name, std::int64_t bytes, Owner owner, Lives lives) {
  tensors_.push_back({std::move(name), bytes, owner, lives, false});
  return static_cast<Slot>(tensors_.size() - 1);
}

void Layer::kernel(std::string_view op, const hw::KernelShape& shape, std::span<const Slot> reads, std::span<const Slot> writes,
                   std::uint32_t further_launches) {
  const std::size_t first = operands_.size();
  const auto add = [&](Slot slot, Access access) {  // a tensor that is named twice is one operand
    const auto known =
        std::find_if(operands_.begin() + static_cast<std::ptrdiff_t>(first), operands_.end(), [&](const SlotUse& use) { return use.slot == slot; });
    if (known == operands_.end()) operands_.push_back({slot, access});
    else if (known->access != access) known->access = Access::read_write;
  };
  for (const Slot slot : reads) add(slot, Access::read);
  for (const Slot slot : writes) add(slot, Access::write);
  const auto count = static_cast<std::uint32_t>(operands_.size() - first);
  launches_.push_back({builder_.kernel(shape, op, kernel_name(shape)), static_cast<std::uint32_t>(first), count, further_launches});
}

void Layer::computes(Function function, std::vector<SlotPart> parts, const Attributes& attributes) {
  launches_.back().compute = static_cast<std::int32_t>(computes_.size());
  computes_.push_back({function, std::move(parts), attributes});
}

void Layer::synchronise() {
  synchronised_ = builder_.event("result for the host");
  launches_.back().synchronises = true;
}

void Layer::finish() {
  std::unordered_set<std::string_view> names;
  for (const Tensor& tensor : tensors_) {
    if (!names.insert(tensor.name).second) throw std::logic_error("layer '" + name_ + "' has two tensors named '" + tensor.name + "'");
  }
  if (region_.end == 0) region_ = {0, forward_count_};
  forward_uses_ = uses(range(0, forward_count_));
  backward_uses_ = uses(range(forward_count_, launches_.size()));
  recomputed_ = recomputed_launches();
  find_survivors();
  forward_saving_ = plan_forward(false);
  forward_dropping_ = plan_forward(true);
  recompute_ = plan_recomputation();
  backward_saving_ = plan_backward(false);
  backward_dropping_ = plan_backward(true);
}

bool Layer::saved(Slot slot) const {
  const Lives lives = tensors_[slot].lives;
  return (lives == Lives::here || lives == Lives::input) && forward_uses_[slot].last_use >= 0 && backward_uses_[slot].last_use >= 0;
}

std::vector<std::size_t> Layer::range(std::size_t begin, std::size_t end) const {
  std::vector<std::size_t> result(end - begin);
  std::iota(result.begin(), result.end(), begin);
  return result;
}

std::vector<Layer::Uses> Layer::uses(std::span<const std::size_t> launches) const {
  std::vector<Uses> result(tensors_.size());
  for (const std::size_t i : launches) {
    for (const SlotUse& use : operands_of(i)) {
      Uses& of_slot = result[use.slot];
      if (use.access != Access::read && of_slot.first_write < 0) of_slot.first_write = static_cast<int>(i);
      of_slot.last_use = static_cast<int>(i);
    }
  }
  return result;
}

/// A saved tensor that the recomputation rebuilds: made by it and used by nothing behind it in the forward.
bool Layer::dropped(Slot slot) const {
  const int begin = static_cast<int>(region_.begin), end = static_cast<int>(region_.end), written = forward_uses_[slot].first_write;
  return saved(slot) && !tensors_[slot].kept && written >= begin && written < end && forward_uses_[slot].last_use < end;
}

/// The launches of the region, with early stop up to the last one that writes a dropped tensor, less those whose result is kept.
std::vector<std::size_t> Layer::recomputed_launches() const {
  const auto writes = [&](std::size_t launch, auto which) {
    const auto operands = operands_of(launch);
    return std::any_of(operands.begin(), operands.end(), [&](const SlotUse& use) { return use.access != Access::read && which(use.slot); });
  };
  const bool early_stop = mode_.early_stop || !whole_forward_recomputed();  // a part is rebuilt as far as the backward needs it
  std::size_t end = early_stop ? region_.begin : region_.end;
  for (std::size_t i = end; i < region_.end; ++i) {
    if (writes(i, [&](Slot slot) { return dropped(slot); })) end = i + 1;
  }
  std::vector<std::size_t> result = range(region_.begin, end);
  const auto kept = [&](Slot slot) { return tensors_[slot].kept; };
  std::erase_if(result,
                [&](std::size_t i) { return writes(i, [&](Slot slot) { return kept(slot) && forward_uses_[slot].first_write == static_cast<int>(i); }); });
  return result;
}

bool Layer::stored(Slot slot) const { return mode_.keeps_unread && tensors_[slot].kept; }

/// What a dropping forward must leave behind: saved tensors that are not dropped, and what the recomputation reads without writing it first.
void Layer::find_survivors() {
  const std::vector<Uses> again = uses(recomputed_);
  survives_.assign(tensors_.size(), false);
  for (Slot slot = 0; slot < static_cast<Slot>(tensors_.size()); ++slot) {
    const bool rebuilt = again[slot].first_write >= 0 && again[slot].first_write == forward_uses_[slot].first_write;
    survives_[slot] =
        taken_here(slot) && tensors_[slot].lives == Lives::here && ((saved(slot) && !dropped(slot)) || (again[slot].last_use >= 0 && !rebuilt) || stored(slot));
    if (mode_.recompute && survives_[slot] && rebuilt) throw std::logic_error("layer '" + name_ + "' recomputes '" + tensors_[slot].name + "', which it has");
  }
}

template <typename Alloc, typename Free>
Layer::Plan Layer::plan(std::span<const std::size_t> launches, Alloc takes, Free gives_back) const {
  const std::vector<Uses> range = uses(launches);
  Plan plan;
  for (const std::size_t i : launches) {
    for (const SlotUse& use : operands_of(i)) {
      if (range[use.slot].first_write == static_cast<int>(i) && takes(use.slot)) plan.push_back({Action::Kind::alloc, use.slot});
    }
    plan.push_back({Action::Kind::launch, static_cast<std::uint32_t>(i)});
    for (const SlotUse& use : operands_of(i)) {
      if (range[use.slot].last_use == static_cast<int>(i) && gives_back(use.slot)) plan.push_back({Action::Kind::free, use.slot});
    }
  }
  return plan;
}

/// Held tensors are given back at the end.
template <typename Alloc, typename Free>
Layer::Plan Layer::plan_with_held(std::span<const std::size_t> launches, Alloc takes, Free gives_back) const {
  Plan result = plan(launches, takes, [&](Slot slot) { return gives_back(slot) && !tensors_[slot].held; });
  const std::vector<Uses> range = uses(launches);
  for (Slot slot = 0; slot < static_cast<Slot>(tensors_.size()); ++slot) {
    if (tensors_[slot].held && range[slot].first_write >= 0 && gives_back(slot)) result.push_back({Action::Kind::free, slot});
  }
  return result;
}

Layer::Plan Layer::plan_forward(bool drops) const {
  const auto given_back = [&](Slot slot) { return tensors_[slot].lives == Lives::here && !(drops ? survives_[slot] : saved(slot)); };
  Plan result = plan_with_held(
      range(0, forward_count_), [&](Slot slot) { return taken_here(slot); }, given_back);
  if (!drops || !whole_forward_recomputed()) free_inputs(result, inputs_end_ > 0 ? begin_of(inputs_end_, result) : result.size());
  return result;
}

/// Rebuilds what was dropped; all else that it makes, the layer's output too unless the checkpoint holds it, goes after its last use.
Layer::Plan Layer::plan_recomputation() const {
  return plan_with_held(
      recomputed_, [&](Slot slot) { return taken_here(slot) && !survives_[slot]; },
      [&](Slot slot) { return taken_here(slot) && !saved(slot) && !held_by_checkpoint(slot); });
}

Layer::Backward Layer::plan_backward(bool drops) const {
  Backward result;
  const auto held = [&](Slot slot) { return drops && held_by_checkpoint(slot); };
  result.plan = plan(
      range(forward_count_, launches_.size()), [&](Slot slot) { return taken_here(slot) && !saved(slot); },
      [&](Slot slot) { return (tensors_[slot].lives == Lives::here || tensors_[slot].lives == Lives::input) && !held(slot); });
  for (Slot slot = 0; slot < static_cast<Slot>(tensors_.size()); ++slot) {
    if (held(slot)) result.plan.push_back({Action::Kind::free, slot});
  }
  const std::vector<Uses> again = uses(recomputed_);
  for (Slot slot = 0; drops && slot < static_cast<Slot>(tensors_.size()); ++slot) {
    if (stored(slot) && survives_[slot] && again[slot].last_use < 0 && backward_uses_[slot].last_use < 0) result.plan.push_back({Action::Kind::free, slot});
  }
  if (drops && whole_forward_recomputed()) free_inputs(result.plan, result.plan.size());
  if (drops && !whole_forward_recomputed()) result.recompute_at = begin_of(recompute_before_, result.plan);
  return result;
}

/// Where the actions of a launch begin, its allocations included.
std::size_t Layer::begin_of(std::size_t launch, const Plan& plan) {
  const auto is_launch = [&](const Action& action) { return action.kind == Action::Kind::launch && action.index == launch; };
  auto at = static_cast<std::size_t>(std::find_if(plan.begin(), plan.end(), is_launch) - plan.begin());
  while (at > 0 && at < plan.size() && plan[at - 1].kind == Action::Kind::alloc) --at;
  return at;
}

/// Reentrant checkpointing: the output that it recomputes, and that output's gradient.
bool Layer::held_by_checkpoint(Slot slot) const {
  if (!mode_.reentrant || !whole_forward_recomputed()) return false;
  const bool output = tensors_[slot].lives == Lives::output && forward_uses_[slot].first_write >= 0;
  const bool gradient = tensors_[slot].lives == Lives::input && forward_uses_[slot].last_use < 0;
  return output || gradient;
}

/// The caller holds the layer's input until the layer returns, or until end_inputs; a checkpointed layer holds it until its backward is done.
void Layer::free_inputs(Plan& plan, std::size_t at) const {
  for (Slot slot = 0; slot < static_cast<Slot>(tensors_.size()); ++slot) {
    const bool only_forward = forward_uses_[slot].last_use >= 0 && backward_uses_[slot].last_use < 0;
    if (tensors_[slot].lives == Lives::input && only_forward) plan.insert(plan.begin() + static_cast<std::ptrdiff_t>(at), {Action::Kind::free, slot});
  }
}

Layer::Instance Layer::instance(std::string_view instance_name, std::span<const Given> given) {
  std::string label;
  const auto buffer = [&](std::string_view owner, const Tensor& tensor) {
    label.assign(owner).append(".").append(tensor.name);
    return builder_.buffer(label, tensor.bytes, tensor.owner);
  };
  if (shared_.empty()) {
    shared_.resize(tensors_.size(), kNoBuffer);
    for (Slot slot = 0; slot < static_cast<Slot>(tensors_.size()); ++slot) {
      if (shared(slot)) shared_[slot] = buffer(name_, tensors_[slot]);
    }
  }
  Instance result{shared_, std::vector<std::int64_t>(tensors_.size())};
  for (const Given& outer : given) {
    result.buffers[outer.slot] = outer.buffer;
    result.begins[outer.slot] = outer.begin;
  }
  for (Slot slot = 0; slot < static_cast<Slot>(tensors_.size()); ++slot) {
    if (result.buffers[slot] == kNoBuffer) result.buffers[slot] = buffer(instance_name, tensors_[slot]);
  }
  return result;
}

void Layer::backward(const Instance& instance, bool drops) {
  if (!drops) return emit(backward_saving_.plan, instance, mode_.backward);
  const std::span<const Action> plan = backward_dropping_.plan;
  emit(plan.first(backward_dropping_.recompute_at), instance, mode_.backward);
  recompute(instance);
  emit(plan.subspan(backward_dropping_.recompute_at), instance, mode_.backward);
}

void Layer::recompute(const Instance& instance) {
  builder_.mark(recompute_begin_);
  emit(recompute_, instance, mode_.forward);
  builder_.mark(recompute_end_);
}

void Layer::emit(std::span<const Action> plan, const Instance& instance, hw::HostWork work) {
  for (const Action& action : plan) {
    switch (action.kind) {
      case Action::Kind::alloc: builder_.alloc(instance.buffers[action.index], Stream::compute); break;
      case Action::Kind::free: builder_.free(instance.buffers[action.index]); break;
      case Action::Kind::launch: emit_launch(launches_[action.index], action.index, instance, work); break;
    }
  }
}

void Layer::emit_launch(const Launch& launch, std::size_t index, const Instance& instance, hw::HostWork work) {
  scratch_.clear();
  for (const SlotUse& use : operands_of(index)) scratch_.push_back({instance.buffers[use.slot], use.access});
  builder_.launch(launch.kernel, Stream::compute, work, scratch_);
  if (launch.compute >= 0) builder_.computes([&] { return call(computes_[static_cast<std::size_t>(launch.compute)], instance); });
  builder_.host_work(hw::HostWork::extra_launch, launch.further_launches);
  if (!launch.synchronises) return;
  builder_.record(synchronised_, Stream::compute);
  builder_.host_wait(synchronised_, WaitReason::synchronize);
}

Call Layer::call(const Compute& compute, const Instance& instance) const {
  Call result{compute.function, {}, compute.attributes};
  result.parts.reserve(compute.parts.size());
  for (const SlotPart& p : compute.parts)
    result.parts.push_back(p.slot == kNoSlot ? Part{} : Part{instance.buffers[p.slot], p.dtype, instance.begins[p.slot] + p.begin, p.count});
  return result;
}

}  // namespace stepcast::program
