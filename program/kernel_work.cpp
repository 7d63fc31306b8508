// Joins the layers: the output of one is the input of the next, its gradient the other way round.
#include "program/kernel_work.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace stepcast::program {
namespace {

/// Compilers are given blocks; Megatron's modules are everywhere.
LayerMode mode_of_ends(const StepSpec& spec) {
  if (spec.kernels.set != KernelSet::megatron) return {};
  return {.forward = hw::HostWork::op_megatron_forward, .backward = hw::HostWork::op_megatron_backward};
}

LayerMode block_mode(const StepSpec& spec, Training training) {
  const bool compiled = spec.kernels.set == KernelSet::pytorch_compile;
  const LayerMode plain = mode_of_ends(spec);
  return {.forward = compiled ? hw::HostWork::op_compiled : plain.forward,
          .backward = compiled ? hw::HostWork::op_compiled : plain.backward,
          .recompute = spec.recompute.mode != RecomputeMode::none && training != Training::none,
          .keeps_unread = !compiled,
          .early_stop = spec.recompute.early_stop && !spec.recompute.reentrant,
          .reentrant = spec.recompute.reentrant};
}

std::vector<BufferId> select(const Layer::Instance& instance, const std::vector<Slot>& slots) {
  std::vector<BufferId> result;
  result.reserve(slots.size());
  for (const Slot slot : slots) result.push_back(instance[slot]);
  return result;
}

/// Native kernels: where each parameter of a layer is read. `prefix`: of the names of a block's.
void give_parameters(const Ports& ports, const std::vector<Unit>& units, const std::string& prefix, std::vector<Layer::Given>& given) {
  for (const NamedSlot& parameter : ports.parameters) {
    const ParameterEntry& entry = entry_of(units, prefix + parameter.name);
    given.push_back({parameter.slot, entry.params, entry.params_begin});
  }
}

constexpr std::int64_t kIdBytes = 8;  // of a token id or a label: int64

/// What one tensor of the input takes, and how many there are: ids and labels, or one tensor of the given size.
std::int64_t tensor_bytes(const StepSpec& spec) {
  return spec.input.sample_bytes ? spec.batch.micro_batch * *spec.input.sample_bytes : kIdBytes * tokens(spec.batch);
}
int input_tensors(const StepSpec& spec) { return spec.input.sample_bytes ? 1 : 2; }

}  // namespace

KernelWork::KernelWork(const StepSpec& spec, Builder& builder, const std::vector<Unit>& units)
    : spec_(spec),
      builder_(builder),
      head_(builder, "head", mode_of_ends(spec)),
      embedding_(builder, "embedding", mode_of_ends(spec)),
      metrics_(builder, "metrics", {}),
      input_(builder.buffer("input.ids", input_tensors(spec) * tensor_bytes(spec), Owner::input)),
      input_copied_(builder.event("input copied")) {
  if (!is_zero(spec.policy.framework) && !spec.optimizer.in_backward) adamw_.emplace(spec, builder, units);
  const hw::KernelShape copy{.kind = hw::KernelKind::copy_to_device, .write_bytes = tensor_bytes(spec), .pinned = spec.input.pin_memory};
  copy_input_ = builder.kernel(copy, "aten::copy_ input", spec.input.pin_memory ? "Memcpy HtoD (Pinned -> Device)" : "Memcpy HtoD (Pageable -> Device)");
  write_blocks();
  make_blocks(units);
  const Ports head = write_head(spec, head_);
  make_ends(units, head, write_embedding(spec, embedding_));
}

/// The tensor in front of a block: what the embedding or the block before wrote.
BufferId KernelWork::boundary(std::int64_t block, bool gradient) const {
  std::string label = block < spec_.model.layers ? "b" : "head";
  if (block < spec_.model.layers) label.append(std::to_string(block));
  const std::int64_t bytes = tokens(spec_.batch) * spec_.model.hidden * hw::bytes_per_element(spec_.precision.param);
  return builder_.buffer(label.append(gradient ? ".d_input" : ".input"), bytes, Owner::activations);
}

void KernelWork::write_blocks() {
  for (std::int64_t i = 0; i < spec_.model.layers; ++i) {
    if (find_kind(i) != kinds_.end()) continue;
    const std::int64_t window = window_of(spec_.model, i, spec_.batch.seq_len);
    const Training training = training_of(spec_.model, i);
    std::string name = "block";
    if (!kinds_.empty()) name = "other_block" + (kinds_.size() > 1 ? std::to_string(kinds_.size()) : "");
    Layer layer(builder_, name, block_mode(spec_, training));
    const Ports ports = write_block(spec_, layer, window, training);
    kinds_.push_back({window, training, std::move(layer), ports});
  }
}

std::vector<KernelWork::BlockKind>::iterator KernelWork::find_kind(std::int64_t block) {
  const std::int64_t window = window_of(spec_.model, block, spec_.batch.seq_len);
  const Training training = training_of(spec_.model, block);
  return std::find_if(kinds_.begin(), kinds_.end(), [&](const BlockKind& kind) { return kind.window == window && kind.training == training; });
}

void KernelWork::make_blocks(const std::vector<Unit>& units) {
  for (std::int64_t i = 0; i < spec_.model.layers; ++i) {
    auto& [window, training, layer, ports] = *find_kind(i);
    std::string name = "b";
    name.append(std::to_string(i));
    std::vector<Layer::Given> given{{ports.params, unit_of_block(units, i).params},
                                    {ports.input, boundary(i, false)},
                                    {ports.output, boundary(i + 1, false)},
                                    {ports.d_output, boundary(i + 1, true)},
                                    {ports.d_input, boundary(i, true)}};
    for (const NamedSlot& inner : ports.inner_units) given.push_back({inner.slot, inner_unit(units, i, inner.name).params});
    give_parameters(ports, units, name + ".", given);
    block_buffers_.push_back(layer.instance(name, given));
    block_gradients_.push_back(select(block_buffers_.back(), ports.parameter_gradients));
  }
}

void KernelWork::make_ends(const std::vector<Unit>& units, const Ports& head, const Ports& embedding) {
  const std::int64_t last = spec_.model.layers;
  const Unit &of_head = head_unit(units), &of_embedding = embedding_unit(units);
  std::vector<Layer::Given> head_given{{head.params, of_head.params}, {head.input, boundary(last, false)}, {head.d_input, boundary(last, true)}};
  if (head.labels != kNoSlot) head_given.insert(head_given.end(), {{head.labels, input_}, {head.metrics, *builder_.program().metrics}});
  give_parameters(head, units, "", head_given);
  head_buffers_ = head_.instance(of_head.name, head_given);
  if (head.kept_logits != kNoSlot) kept_logits_ = head_buffers_[head.kept_logits];
  if (spec_.kernels.train_metrics > 0) {
    const Layer::Given logits[] = {{write_train_metrics(spec_, metrics_), *kept_logits_}};
    metrics_buffers_ = metrics_.instance("metrics", logits);
  }
  root_gradients_ = select(head_buffers_, head.parameter_gradients);
  head_gradient_count_ = root_gradients_.size();
  std::vector<Layer::Given> given{
      {embedding.params, of_embedding.params}, {embedding.input, input_}, {embedding.output, boundary(0, false)}, {embedding.d_output, boundary(0, true)}};
  give_parameters(embedding, units, "", given);
  if (embedding.tied_gradient != kNoSlot)
    given.push_back({embedding.tied_gradient, builder_.buffer("root.grad.head.weight", embedding_.bytes(embedding.tied_gradient), Owner::gradients)});
  embedding_buffers_ = embedding_.instance(of_embedding.name, given);
  for (const BufferId gradient : select(embedding_buffers_, embedding.parameter_gradients)) root_gradients_.push_back(gradient);
}

/// Each copy that is not both pinned and non-blocking makes the host wait for the stream: .to() synchronises it, and the driver can't stage pageable memory ahead of it.
void KernelWork::copy_inputs() {
  builder_.alloc(input_, Stream::compute);
  for (int tensor = 0; tensor < input_tensors(spec_); ++tensor) {
    builder_.launch(copy_input_, Stream::compute, hw::HostWork::op_forward, {inout(input_)});
    builder_.computes([&] {
      const std::int64_t count = tokens(spec_.batch);  // int64, as wide as fp64
      return Call{Function::load_input, {part(input_, hw::Dtype::fp64, count, tensor * count)}, {.index = tensor}};
    });
    if (spec_.input.pin_memory && spec_.input.non_blocking) continue;
    builder_.record(input_copied_, Stream::compute);
    builder_.host_wait(input_copied_, WaitReason::synchronize);
  }
}

void KernelWork::head_backward() {
  head_.backward(head_buffers_);
  end_of_gradients(spec_.model.layers);
}

void KernelWork::block_backward(std::int64_t block) {
  kind(block).backward(buffers(block), recomputes(block));
  end_of_gradients(block);
}

void KernelWork::block_backward_of_recomputed(std::int64_t block) {
  kind(block).backward_of_recomputed(buffers(block));
  end_of_gradients(block);
}

/// Behind the first part that is trained nobody wants the gradient of its input.
void KernelWork::end_of_gradients(std::int64_t block) {
  if (embedding_is_frozen(spec_.model) && block == blocks_without_backward(spec_.model)) builder_.free(boundary(block, true));
}

void KernelWork::embedding_backward() {
  if (!embedding_is_frozen(spec_.model)) embedding_.backward(embedding_buffers_);
  builder_.free(input_);
}

void KernelWork::after_backward() {
  if (spec_.kernels.train_metrics > 0) metrics_.forward(metrics_buffers_);
  if (kept_logits_) builder_.free(*kept_logits_);
}

}  // namespace stepcast::program
