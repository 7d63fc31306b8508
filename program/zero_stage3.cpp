// The step of ZeRO stage 3 and the hooks around modules. Gradients: zero_stage3_gradients.cpp.
#include "program/zero_stage3.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string_view>

#include "program/host_copies.hpp"

namespace stepcast::program {
namespace {

std::vector<ParameterTensor> all_tensors(const ModelShape& model) {
  std::vector<ParameterTensor> tensors = root_tensors(model);
  for (std::int64_t b = 0; b < model.layers; ++b) {
    const std::vector<ParameterTensor> block = block_tensors(model, b);
    tensors.insert(tensors.end(), block.begin(), block.end());
  }
  return tensors;
}

/// Modules that kernels name; norms and the like are fetched with the part of the model that they stand in.
bool has_own_kernels(const std::string& module, bool matmul) { return matmul || module == "embedding" || module == "positions"; }

}  // namespace

std::int64_t ZeroStage3::partition_of(const StepSpec& spec) {
  std::int64_t elements = 0;
  for (const ParameterTensor& tensor : all_tensors(spec.model)) elements += partition_elements(tensor.elements, spec.world.ranks());
  return elements;
}

std::int64_t ZeroStage3::trained_partition_of(const StepSpec& spec) {
  std::int64_t elements = 0;
  for (const ParameterTensor& tensor : all_tensors(spec.model)) elements += tensor.frozen ? 0 : partition_elements(tensor.elements, spec.world.ranks());
  return elements;
}

BufferId ZeroStage3::persistent_of(const StepSpec& spec, Builder& builder) {
  const bool alone = spec.world.ranks() == 1 && spec.policy.cpu_offload != CpuOffload::parameters;
  std::int64_t elements = 0;
  for (const ParameterTensor& tensor : all_tensors(spec.model)) {
    if (alone || tensor.elements <= spec.policy.stage3_param_persistence_threshold)
      elements += spec.world.ranks() * partition_elements(tensor.elements, spec.world.ranks());
  }
  return builder.buffer("persistent_parameters", hw::bytes_per_element(spec.precision.param) * elements, Owner::parameters);
}

ZeroStage3::ZeroStage3(const StepSpec& spec, Builder& builder, const std::vector<Unit>& units, Work& work)
    : TrainingStep(spec, builder, work),
      units_(units),
      p_(hw::bytes_per_element(spec.precision.param)),
      r_(hw::bytes_per_element(spec.precision.reduce)),
      ranks_(spec.world.ranks()),
      reduction_(spec.policy.overlap_comm ? Stream::reduce_scatter : Stream::compute),
      persistent_(persistent_of(spec, builder)),
      partition_(builder.buffer("bit16_partition", p_ * partition_of(spec), Owner::parameters)),
      gradient_partition_(builder.buffer("gradient_partition", p_ * trained_partition_of(spec), Owner::gradients)),
      ipg_buffer_(builder.buffer("ipg_buffer", p_ * spec.policy.reduce_bucket_size, Owner::reduction)),
      parameters_(zero_parameters(spec, builder, units, work)),
      hooks_(builder),
      optimizer_(spec, builder, make_partition(spec, builder, trained_partition_of(spec)),
                 std::count_if(parameters_.begin(), parameters_.end(), [](const ZeroParameter& p) { return !p.frozen; }), gradient_partition_, partition_),
      host_gradients_(spec, builder, reduction_),
      coordinator_(spec, builder, partition_),
      drained_(builder.event("reductions drained")) {
  for (const Unit& unit : units) name_unit(unit.name, unit.index);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == "head.weight" || (spec.model.tied_embeddings && parameters_[i].name == "embedding.weight")) head_weight_ = i;
    if (!parameters_[i].frozen) hooks_.watch(i, parameters_[i].gradient);
  }
  if (spec.model.tied_embeddings && !embedding_is_frozen(spec.model)) shared_ = head_weight_;
  make_parts();
}

void ZeroStage3::make_parts() {
  std::vector<std::vector<std::size_t>> numbers(units_.size() + 1);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const ZeroParameter& p = parameters_[i];
    const bool behind = units_[p.unit].root && p.module != "embedding" && p.module != "positions";
    numbers[p.unit + (behind ? 1 : 0)].push_back(i);
  }
  for (std::size_t part = 0; part < numbers.size(); ++part) add_part(numbers[part], part == units_.size() && spec_.model.tied_embeddings);
}

void ZeroStage3::add_part(const std::vector<std::size_t>& numbers, bool tied_head) {
  std::map<std::string, std::vector<std::size_t>> named;
  std::vector<std::size_t> rest;
  std::vector<std::string> order, rest_modules;
  for (const std::size_t i : numbers) {
    const std::string& module = parameters_[i].module;
    const auto weight = std::find_if(numbers.begin(), numbers.end(), [&](std::size_t j) { return parameters_[j].module == module; });
    const bool matmul = parameters_[*weight].matmul;
    if (!has_own_kernels(module, matmul)) {
      rest.push_back(i);
      if (std::find(rest_modules.begin(), rest_modules.end(), module) == rest_modules.end()) rest_modules.push_back(module);
      continue;
    }
    if (!named.contains(module)) order.push_back(module);
    named[module].push_back(i);
  }
  if (tied_head) order.emplace_back("head"), named["head"] = {head_weight_};
  Part part;
  for (const std::string& module : order) part.modules.push_back(coordinator_.add_module(module, parameters_, named[module]));
  if (!rest.empty()) part.rest = coordinator_.add_module("rest", parameters_, rest, static_cast<std::uint32_t>(rest_modules.size()));
  parts_.push_back(std::move(part));
}

void ZeroStage3::setup() {
  const auto alloc = [&](BufferId buffer) {
    if (builder_.program().buffers[buffer].bytes > 0) builder_.alloc(buffer, Stream::compute);
  };
  alloc(persistent_);
  if (spec_.policy.cpu_offload != CpuOffload::parameters) alloc(partition_);
  if (!optimizer_.offloaded()) alloc(gradient_partition_);
  if (spec_.policy.contiguous_gradients) alloc(ipg_buffer_);
  optimizer_.setup();
}

// --- the step ----------------------------------------------------------------------------------------------------------------------------------------

void ZeroStage3::forward() {
  if (coordinator_.stream() != Stream::compute) stream_wait(coordinator_.stream(), Stream::compute);  // the optimizer must be done
  work_.copy_inputs();
  run(front(), [&] { work_.embedding_forward(); });
  for (std::size_t i = 0; i + 1 < units_.size(); ++i) {
    open_unit(i);
    run(parts_[i], [&] { work_.block_forward(units_[i].first_block); });
    close_unit(i);
  }
  run(head(), [&] { work_.head_forward(); });
}

void ZeroStage3::backward() {
  buckets_ = 0;
  if (spec_.kernels.loss == Loss::chunked && shared_ != head_weight_ && !parameters_[head_weight_].frozen)
    gradient_ready(head_weight_);  // it is there from the forward on
  run(
      head(), [&] { work_.head_backward(); }, shared_);
  for (std::size_t i = units_.size() - 1; i-- > 0;) {
    if (units_[i].first_block < blocks_without_backward(spec_.model)) break;
    open_unit(i);
    run(parts_[i], [&] { work_.block_backward(units_[i].first_block); });
    close_unit(i);
  }
  embedding_backward();
  epilogue();
  coordinator_.end_of_pass();
}

/// The hooks ask for no use of the weights; where nobody wants a gradient they do not run.
void ZeroStage3::embedding_backward() {
  if (embedding_is_frozen(spec_.model)) return work_.embedding_backward();
  for (const Module module : front().modules) coordinator_.fetch(module);
  run(front(), [&] { work_.embedding_backward(); });
  for (const Module module : front().modules) coordinator_.release(module);
}

void ZeroStage3::optimizer() {
  optimizer_.step(false);
  gather_persistent();
}

/// persistent_parameters[0].all_gather(persistent_parameters), of the updated parts.
void ZeroStage3::gather_persistent() {
  const std::int64_t bytes = builder_.program().buffers[persistent_].bytes;
  if (bytes == 0) return;
  if (spec_.policy.cpu_offload == CpuOffload::parameters) {
    builder_.launch(copy_to_device(builder_, bytes / ranks_), Stream::compute, hw::HostWork::op_optimizer, {inout(persistent_)});
  } else if (ranks_ == 1) {
    builder_.launch(kernel("aten::copy_ persistent parameters", hw::MemoryClass::copy, bytes, bytes), Stream::compute, hw::HostWork::op_optimizer,
                    {in(partition_), inout(persistent_)});
  }
  if (ranks_ == 1) return;
  const CollectiveEntry entry{
      {hw::CollectiveKind::all_gather, spec_.precision.param, bytes, spec_.world}, Communicator::shard, false, "all_gather persistent parameters"};
  builder_.collective(builder_.collective(entry), Stream::compute, {inout(persistent_)});
}

// --- hooks around modules ----------------------------------------------------------------------------------------------------------------------------

/// A module begins before the allocations of its first kernel and ends where the next begins.
template <class Emit>
void ZeroStage3::run(const Part& part, Emit emit, std::size_t not_yet) {
  if (part.rest != ZeroCoordinator::kNone) coordinator_.fetch(part.rest);
  intercept(
      builder_, emit, [&](std::span<const Op> calls, std::size_t i) { enter(part, calls, i); },
      [&](std::span<const Op> calls, std::size_t i) {
        if (!in_backward_) return;
        for (const std::size_t parameter : hooks_.ready(calls, i, not_yet)) gradient_ready(parameter);
      });
  change_module(ZeroCoordinator::kNone);
  if (part.rest != ZeroCoordinator::kNone) coordinator_.release(part.rest);
}

void ZeroStage3::enter(const Part& part, std::span<const Op> calls, std::size_t i) {
  std::size_t next = i;
  while (next + 1 < calls.size() && calls[next].kind == OpKind::alloc) ++next;
  const Module module = calls[next].kind == OpKind::launch ? module_of(part, calls[next]) : ZeroCoordinator::kNone;
  if (module != ZeroCoordinator::kNone && module != module_) change_module(module);
  if (calls[i].kind == OpKind::launch) show_gathered(part, calls[i]);
}

void ZeroStage3::change_module(Module next) {
  if (module_ != ZeroCoordinator::kNone) coordinator_.release(module_);
  module_ = next;
  if (module_ != ZeroCoordinator::kNone) coordinator_.fetch(module_);
}

/// The module whose name is a word of the op's, if the kernel reads parameters: "aten::mm q", "MmBackward0 input head", "aten::embedding positions".
ZeroStage3::Module ZeroStage3::module_of(const Part& part, const Op& op) const {
  const Program& program = builder_.program();
  const auto operands = program.operands_of(op);
  if (std::none_of(operands.begin(), operands.end(), [&](const Operand& o) { return o.buffer == persistent_; })) return ZeroCoordinator::kNone;
  std::string_view text = program.kernels[op.id].op;
  if (const std::size_t colons = text.find("::"); colons != std::string_view::npos) text.remove_prefix(colons + 2);
  Module found = ZeroCoordinator::kNone;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    for (const Module module : part.modules) found = coordinator_.name(module) == word ? module : found;
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return found;
}

/// In the operands of the kernel the gathered parameters take the place of the persistent ones.
void ZeroStage3::show_gathered(const Part& part, const Op& op) {
  const Module own = module_of(part, op), module = own != ZeroCoordinator::kNone ? own : part.rest;
  if (module == ZeroCoordinator::kNone || !coordinator_.gathers(module)) return;
  for (std::uint32_t k = 0; k < op.operand_count; ++k) {
    Operand& operand = builder_.program().operands[op.operands + k];
    if (operand.buffer == persistent_) operand.buffer = coordinator_.storage(module);
  }
}

}  // namespace stepcast::program
