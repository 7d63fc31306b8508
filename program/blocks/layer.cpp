// Lifetimes from uses, and the emission of plans.
#include "program/blocks/layer.hpp"

#include <algorithm>
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

void Layer::finish() {
  std::unordered_set<std::string_view> names;
  for (const Tensor& tensor : tensors_) {
    if (!names.insert(tensor.name).second) throw std::logic_error("layer '" + name_ + "' has two tensors named '" + tensor.name + "'");
  }
  forward_uses_ = uses(0, forward_count_);
  backward_uses_ = uses(forward_count_, launches_.size());
  forward_saving_ = plan_forward(forward_count_, true, true);
  free_inputs(forward_saving_);
  forward_dropping_ = plan_forward(forward_count_, false, true);
  recompute_ = plan_forward(mode_.early_stop ? needed_launches() : forward_count_, true, false);
  backward_plan_ = plan_backward();
  if (mode_.recompute) free_inputs(backward_plan_);
}

bool Layer::saved(Slot slot) const {
  const Lives lives = tensors_[slot].lives;
  return (lives == Lives::here || lives == Lives::input) && forward_uses_[slot].last_use >= 0 && backward_uses_[slot].last_use >= 0;
}

std::vector<Layer::Uses> Layer::uses(std::size_t begin, std::size_t end) const {
  std::vector<Uses> result(tensors_.size());
  for (std::size_t i = begin; i < end; ++i) {
    for (const SlotUse& use : operands_of(i)) {
      Uses& of_slot = result[use.slot];
      if (use.access != Access::read && of_slot.first_write < 0) of_slot.first_write = static_cast<int>(i);
      of_slot.last_use = static_cast<int>(i);
    }
  }
  return result;
}

/// Launches up to the last one that writes a saved tensor.
std::size_t Layer::needed_launches() const {
  std::size_t needed = 0;
  for (std::size_t i = 0; i < forward_count_; ++i) {
    for (const SlotUse& use : operands_of(i)) {
      if (use.access != Access::read && saved(use.slot)) needed = i + 1;
    }
  }
  return needed;
}

template <typename Alloc, typename Free>
Layer::Plan Layer::plan(std::size_t begin, std::size_t end, Alloc takes, Free gives_back) const {
  const std::vector<Uses> range = uses(begin, end);
  Plan plan;
  for (std::size_t i = begin; i < end; ++i) {
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

/// The first `count` launches of the forward. Tensors that are not kept are given back after their last use among them, held ones at the end.
Layer::Plan Layer::plan_forward(std::size_t count, bool keep_saved, bool keep_output) const {
  const auto given_back = [&](Slot slot) {
    const bool kept = (keep_saved && saved(slot)) || (keep_output && tensors_[slot].lives == Lives::output);
    return taken_here(slot) && !kept;
  };
  Plan result = plan(
      0, count, [&](Slot slot) { return taken_here(slot); }, [&](Slot slot) { return given_back(slot) && !tensors_[slot].held; });
  const std::vector<Uses> range = uses(0, count);
  for (Slot slot = 0; slot < tensors_.size(); ++slot) {
    if (tensors_[slot].held && range[slot].first_write >= 0 && given_back(slot)) result.push_back({Action::Kind::free, slot});
  }
  return result;
}

Layer::Plan Layer::plan_backward() const {
  return plan(
      forward_count_, launches_.size(), [&](Slot slot) { return taken_here(slot) && !saved(slot); },
      [&](Slot slot) { return tensors_[slot].lives == Lives::here || tensors_[slot].lives == Lives::input; });
}

/// The caller holds the layer's input until the layer returns; a checkpointed layer holds it until its backward is done.
void Layer::free_inputs(Plan& plan) const {
  for (Slot slot = 0; slot < tensors_.size(); ++slot) {
    const bool only_forward = forward_uses_[slot].last_use >= 0 && backward_uses_[slot].last_use < 0;
    if (tensors_[slot].lives == Lives::input && only_forward) plan.push_back({Action::Kind::free, slot});
  }
}

std::vector<BufferId> Layer::instance(std::string_view instance_name, std::span<const Given> given) {
  std::string label;
  const auto buffer = [&](std::string_view owner, const Tensor& tensor) {
    label.assign(owner).append(".").append(tensor.name);
    return builder_.buffer(label, tensor.bytes, tensor.owner);
  };
  if (shared_.empty()) {
    shared_.resize(tensors_.size(), kNoBuffer);
    for (Slot slot = 0; slot < tensors_.size(); ++slot) {
      if (shared(slot)) shared_[slot] = buffer(name_, tensors_[slot]);
    }
  }
  std::vector<BufferId> buffers = shared_;
  for (const Given& outer : given) buffers[outer.slot] = outer.buffer;
  for (Slot slot = 0; slot < tensors_.size(); ++slot) {
    if (buffers[slot] == kNoBuffer) buffers[slot] = buffer(instance_name, tensors_[slot]);
  }
  return buffers;
}

void Layer::backward(std::span<const BufferId> buffers) {
  if (mode_.recompute) {
    builder_.mark(recompute_begin_);
    emit(recompute_, buffers, forward_work());
    builder_.mark(recompute_end_);
  }
  emit(backward_plan_, buffers, backward_work());
}

void Layer::emit(const Plan& plan, std::span<const BufferId> buffers, hw::HostWork work) {
  for (const Action& action : plan) {
    switch (action.kind) {
      case Action::Kind::alloc: builder_.alloc(buffers[action.index], Stream::compute); break;
      case Action::Kind::free: builder_.free(buffers[action.index]); break;
      case Action::Kind::launch: {
        scratch_.clear();
        for (const SlotUse& use : operands_of(action.index)) scratch_.push_back({buffers[use.slot], use.access});
        builder_.launch(launches_[action.index].kernel, Stream::compute, work, scratch_);
        builder_.host_work(hw::HostWork::extra_launch, launches_[action.index].further_launches);
        break;
      }
    }
  }
}

}  // namespace stepcast::program
