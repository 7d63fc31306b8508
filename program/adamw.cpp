// Multi-tensor passes, single-tensor kernels and clipping.
#include "program/adamw.hpp"

#include <algorithm>
#include <array>

#include "program/groups.hpp"
#include "program/host_copies.hpp"

namespace stepcast::program {
namespace {

constexpr hw::HostWork kOptimizerOp = hw::HostWork::op_optimizer;

// Limits of one multi-tensor launch (MultiTensorApply.cuh): tensors by number of tensor lists, and blocks of one chunk each.
constexpr std::array<std::size_t, 5> kMaxTensors{110, 64, 48, 36, 30};
constexpr std::int64_t kChunkElements = 65536, kMaxBlocks = 320;
constexpr std::int64_t kMaxElements = kChunkElements * kMaxBlocks;

}  // namespace

AdamW::AdamW(const StepSpec& spec, Builder& builder, std::span<const Unit> units, Stream stream)
    : spec_(spec), builder_(builder), stream_(stream), element_(hw::bytes_per_element(spec.precision.master)) {
  for (const Unit& unit : units) {
    if (unit.trained_shard > 0) units_.push_back(&unit);
  }
  for (const Unit* unit : units_) {
    std::string label = unit->name;
    temporary_.push_back(builder.buffer(label.append(".adam_temporary"), element_ * unit->trained_shard, Owner::optimizer));
    second_temporary_.push_back(builder.buffer(label.append("2"), element_ * unit->trained_shard, Owner::optimizer));
  }
  if (spec.optimizer.in_backward) return;  // knows no global norm
  std::int64_t norms = spec.policy.framework == Framework::fsdp1 ? static_cast<std::int64_t>(units_.size()) : 0;
  for (const Unit* unit : units_) norms += spec.policy.framework == Framework::fsdp1 ? 0 : unit->trained_tensors;
  const std::int64_t number = hw::bytes_per_element(norm_type());
  norms_ = builder.buffer("clip.norms", number * norms, Owner::workspace);
  norm_ = builder.buffer("clip.norm", number, Owner::workspace);
  if (spec.precision.grad_scaler) overflow_ = builder.buffer("scaler.overflow", 4, Owner::workspace);
}

void AdamW::step() {
  if (spec_.kernels.set == KernelSet::native) return native_step();
  if (spec_.policy.cpu_offload != CpuOffload::none) return step_on_host();
  if (spec_.precision.grad_scaler) unscale();
  if (spec_.optimizer.clip_grad_norm) spec_.policy.framework == Framework::fsdp1 ? clip() : clip_tensors();
  if (spec_.optimizer.clip_host_sync) wait_for_host("norm on the host");
  // GradScaler.step asks whether a gradient overflowed; the fused optimizer looks by itself, on the device.
  if (spec_.precision.grad_scaler && spec_.optimizer.implementation != OptimizerImpl::fused) wait_for_host("overflow on the host");
  update();
  if (!spec_.precision.grad_scaler) return;
  scalar("aten::_amp_update_scale_", {inout(overflow_)});
  builder_.free(overflow_);
}

/// ShardedGradScaler.unscale_ (torch/distributed/fsdp/sharded_grad_scaler.py): one multi-tensor pass, and the finding of all ranks.
void AdamW::unscale() {
  builder_.alloc(overflow_, Stream::compute);
  scalar("aten::zeros overflow", {out(overflow_)});
  pass({"aten::_amp_foreach_non_finite_check_and_unscale_", {}, {&Unit::sharded_grad}}, groups(1));
  all_reduce_scalars(overflow_, "all_reduce overflow");
}

/// On the host's processors, where shards and gradients are. The norm is combined on the device, and the host waits for it.
void AdamW::step_on_host() {
  std::int64_t elements = 0;
  for (const Unit* unit : units_) elements += unit->trained_shard;
  if (spec_.optimizer.clip_grad_norm) {
    builder_.host_work(hw::HostWork::cpu_pass, mebi_elements(elements));
    builder_.alloc(norm_, Stream::compute);
    scalar("aten::to norm", {out(norm_)});
    all_reduce_scalars(norm_, "all_reduce gradient norm");
    builder_.free(norm_);
    wait_for_host("norm on the host");
    builder_.host_work(hw::HostWork::cpu_pass, mebi_elements(elements));
  }
  cpu_adam(builder_, spec_.optimizer.implementation, elements);
}

/// Native kernels: the sum of squares, its all-reduce, the factor from it, the scaling, and one pass over everything.
void AdamW::native_step() {
  if (spec_.optimizer.clip_grad_norm) native_clip();
  if (spec_.optimizer.clip_host_sync) wait_for_host("norm on the host");
  if (!state_created_) create_state();
  fused();
}

void AdamW::native_clip() {
  builder_.alloc(norm_, Stream::compute);
  const std::vector<Operand> gradients = operands_of({&Unit::sharded_grad}, Access::read);
  std::int64_t elements = 0;
  for (const Unit* unit : units_) elements += unit->trained_shard;
  const auto launch = [&](Function function, const char* op, std::int64_t writes, Access norm, Access access) {
    std::vector<Operand> operands{{norm_, norm}};
    for (const Operand& gradient : gradients) operands.push_back({gradient.buffer, access});
    builder_.launch(kernel(op, elements, writes), Stream::compute, kOptimizerOp, operands);
    builder_.computes([&] {
      Call call{function, {norm_part()}, {}};
      for (const Part& gradient : gradient_parts()) call.parts.push_back(gradient);
      return call;
    });
  };
  launch(Function::sum_of_squares, "native::sum_of_squares", 0, Access::write, Access::read);
  all_reduce_scalars(norm_, "all_reduce gradient norm");
  scalar("native::clip_coefficient", {inout(norm_), inout(*builder_.program().metrics)});
  builder_.computes([&] { return Call{Function::clip_coefficient, {norm_part(), part(*builder_.program().metrics, hw::Dtype::fp64, 0)}, {}}; });
  launch(Function::scale_by, "native::scale_by", elements, Access::read, Access::read_write);
  builder_.free(norm_);
}

std::vector<Operand> AdamW::operands_of(std::initializer_list<BufferId Unit::*> members, Access access) const {
  std::vector<Operand> operands;
  for (const Unit* unit : units_) {
    for (const auto member : members) operands.push_back({unit->*member, access});
  }
  return operands;
}

Part AdamW::norm_part() const { return part(norm_, norm_type(), 1); }

std::vector<Part> AdamW::gradient_parts() const {
  std::vector<Part> parts;
  for (const Unit* unit : units_) {
    if (unit->gradients.empty()) parts.push_back(part(unit->sharded_grad, spec_.precision.master, unit->trained_shard));
    for (const Unit::GradientPlace& gradient : unit->gradients) parts.push_back(gradient.part);
  }
  return parts;
}

/// AdamW on these units: parameters, gradient and moments of each part of the gradients.
Call AdamW::update_call(const Group& group) const {
  Call call{Function::adamw, {}, {}};
  const auto add = [&](const Unit& unit, const Part& gradient, std::int64_t begin, std::int64_t state_begin) {
    const auto beside = [&](BufferId buffer, std::int64_t from) { return part(buffer, spec_.precision.master, gradient.count, from); };
    call.parts.insert(call.parts.end(), {beside(unit.master, begin), gradient, beside(unit.exp_avg, state_begin), beside(unit.exp_avg_sq, state_begin)});
  };
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const Unit& unit = *units_[i];
    if (unit.gradients.empty()) add(unit, part(unit.sharded_grad, spec_.precision.master, unit.trained_shard), 0, 0);
    for (const Unit::GradientPlace& gradient : unit.gradients) add(unit, gradient.part, gradient.begin, gradient.state_begin);
  }
  return call;
}

void AdamW::wait_for_host(const char* what) {
  const EventId known = builder_.event(what);
  builder_.record(known, Stream::compute);
  builder_.host_wait(known, WaitReason::synchronize);
}

void AdamW::update() {
  if (!state_created_) create_state();
  switch (spec_.optimizer.implementation) {
    case OptimizerImpl::fused: fused(); break;
    case OptimizerImpl::foreach: multi_tensor(); break;
    case OptimizerImpl::for_loop: for_loop(); break;
  }
}

KernelId AdamW::kernel(const char* op, std::int64_t read_elements, std::int64_t write_elements) const {
  hw::KernelShape shape;
  shape.dtype = spec_.precision.master;
  shape.memory = hw::MemoryClass::optimizer;
  shape.read_bytes = element_ * read_elements;
  shape.write_bytes = element_ * write_elements;
  return builder_.kernel(shape, op, "multi_tensor_apply_kernel");
}

/// Lazily, in the first step: zeros of each shard's size, twice.
void AdamW::create_state() {
  for (const Unit* unit : units_) {
    const KernelId zeros = kernel("aten::zeros_like", 0, unit->trained_shard);
    for (const BufferId state : {unit->exp_avg, unit->exp_avg_sq}) {
      builder_.alloc(state, stream_);
      builder_.launch(zeros, stream_, kOptimizerOp, {out(state)});
      builder_.computes([&] { return zero_call(part(state, spec_.precision.master, unit->trained_shard)); });
    }
  }
  state_created_ = true;
}

/// Greedy, as multi_tensor_apply fills a launch: up to a number of tensors and of chunks; a larger tensor takes several launches.
std::vector<AdamW::Group> AdamW::groups(std::size_t tensor_lists) const {
  std::vector<Group> result;
  std::size_t count = 0;
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const std::int64_t elements = units_[i]->trained_shard;
    count += tensors(*units_[i]);
    if (result.empty() || count > kMaxTensors[tensor_lists - 1] || result.back().elements + elements > kMaxElements) {
      result.push_back({i, i, 0, 0});
      count = tensors(*units_[i]);
    }
    Group& group = result.back();
    group.end = i + 1;
    group.elements += elements;
    group.further_launches = static_cast<std::uint32_t>((group.elements - 1) / kMaxElements);
  }
  return result;
}

void AdamW::pass(const Pass& pass, const std::vector<Group>& groups) {
  std::vector<Operand> operands;
  const auto lists = static_cast<std::int64_t>(pass.reads.size() + pass.updates.size());
  for (const Group& group : groups) {
    operands.clear();
    for (std::size_t i = group.begin; i < group.end; ++i) {
      for (const auto member : pass.reads) operands.push_back(in(units_[i]->*member));
      for (const auto member : pass.updates) operands.push_back(inout(units_[i]->*member));
      if (pass.temporary_written) operands.push_back({temporary_[i], pass.temporary_read ? Access::read_write : Access::write});
      else if (pass.temporary_read) operands.push_back(in(temporary_[i]));
    }
    const std::int64_t reads = lists + (pass.temporary_read ? 1 : 0);
    const std::int64_t writes = static_cast<std::int64_t>(pass.updates.size()) + (pass.temporary_written ? 1 : 0);
    builder_.launch(kernel(pass.op, reads * group.elements, writes * group.elements), stream_, kOptimizerOp, operands);
    builder_.computes([&] { return update_call(group); });
    builder_.host_work(hw::HostWork::extra_launch, group.further_launches);
  }
  dispatch_tensors(pass.reads.size() + pass.updates.size() + (pass.temporary_read || pass.temporary_written ? 1 : 0));
}

/// FSDP2's parameters are DTensors: each op looks at every tensor of its lists once more.
void AdamW::dispatch_tensors(std::size_t lists) {
  if (spec_.policy.framework != Framework::fsdp2) return;
  std::size_t count = 0;
  for (const Unit* unit : units_) count += unit->trained_tensors;
  builder_.host_work(hw::HostWork::dtensor_dispatch, static_cast<std::uint32_t>(lists * count));
}

/// One kernel: reads p, g, m, v and writes p, m, v: 28 bytes per fp32 parameter.
void AdamW::fused() { pass({"aten::_fused_adamw_", {&Unit::sharded_grad}, {&Unit::master, &Unit::exp_avg, &Unit::exp_avg_sq}}, groups(4)); }

/// The denominator is a temporary of the size of all local parameters. 20 element accesses per parameter.
void AdamW::multi_tensor() {
  pass({"aten::_foreach_mul_ weight decay", {}, {&Unit::master}}, groups(1));
  pass({"aten::_foreach_lerp_", {&Unit::sharded_grad}, {&Unit::exp_avg}}, groups(2));
  pass({"aten::_foreach_mul_ beta2", {}, {&Unit::exp_avg_sq}}, groups(1));
  pass({"aten::_foreach_addcmul_", {&Unit::sharded_grad}, {&Unit::exp_avg_sq}}, groups(3));
  for (const BufferId buffer : temporary_) builder_.alloc(buffer, stream_);
  pass({"aten::_foreach_sqrt", {&Unit::exp_avg_sq}, {}, false, true}, groups(2));
  pass({"aten::_foreach_div_", {}, {}, true, true}, groups(1));
  pass({"aten::_foreach_add_ eps", {}, {}, true, true}, groups(1));
  pass({"aten::_foreach_addcdiv_", {&Unit::exp_avg}, {&Unit::master}, true}, groups(3));
  for (const BufferId buffer : temporary_) builder_.free(buffer);
}

/// Parameter by parameter: denom = (v.sqrt() / bias_correction).add_(eps) makes two temporaries.
void AdamW::for_loop() {
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const Unit& u = *units_[i];
    const BufferId root = temporary_[i], denominator = second_temporary_[i];
    const std::int64_t count = tensors(u), n = (u.trained_shard + count - 1) / count;  // a shard's parameters, as if of one size
    const auto launch = [&](const char* op, std::int64_t reads, std::int64_t writes, std::initializer_list<Operand> operands) {
      const KernelId id = kernel(op, reads * n, writes * n);
      for (std::int64_t k = 0; k < count; ++k) builder_.launch(id, stream_, kOptimizerOp, operands);
    };
    launch("aten::mul_ weight decay", 1, 1, {inout(u.master)});
    launch("aten::lerp_", 2, 1, {inout(u.exp_avg), in(u.sharded_grad)});
    launch("aten::mul_ beta2", 1, 1, {inout(u.exp_avg_sq)});
    launch("aten::addcmul_", 2, 1, {inout(u.exp_avg_sq), in(u.sharded_grad)});
    builder_.alloc(root, stream_);
    launch("aten::sqrt", 1, 1, {in(u.exp_avg_sq), out(root)});
    builder_.alloc(denominator, stream_);
    launch("aten::div", 1, 1, {in(root), out(denominator)});
    builder_.free(root);
    launch("aten::add_ eps", 1, 1, {inout(denominator)});
    launch("aten::addcdiv_", 3, 1, {inout(u.master), in(u.exp_avg), in(denominator)});
    builder_.free(denominator);
  }
}

/// FSDP's clip_grad_norm_: norms of the sharded gradients, one all-reduce of one element, one multiplication per gradient. No host synchronisation.
void AdamW::clip() {
  builder_.alloc(norms_, Stream::compute);
  builder_.alloc(norm_, Stream::compute);
  const auto per_tensor = [&](const Unit& unit, const char* op, bool updates, std::initializer_list<Operand> operands) {
    const std::int64_t count = tensors(unit), n = (unit.trained_shard + count - 1) / count;
    const KernelId id = kernel(op, n, updates ? n : 0);
    for (std::int64_t k = 0; k < count; ++k) builder_.launch(id, Stream::compute, kOptimizerOp, operands);
  };
  for (const Unit* unit : units_) per_tensor(*unit, "aten::linalg_vector_norm", false, {in(unit->sharded_grad), inout(norms_)});
  for (const char* op : {"aten::stack", "aten::linalg_vector_norm total", "aten::pow"}) scalar(op, {in(norms_), inout(norm_)});
  all_reduce_scalars(norm_, "all_reduce gradient norm");
  for (const char* op : {"aten::pow root", "aten::add eps", "aten::div", "aten::clamp"}) scalar(op, {inout(norm_)});
  for (const Unit* unit : units_) per_tensor(*unit, "aten::mul_ clip", true, {inout(unit->sharded_grad), in(norm_)});
  builder_.free(norms_);
  builder_.free(norm_);
}

/// torch.nn.utils.clip_grad_norm_ with its multi-tensor ops. Over DTensors the norms of all tensors, stacked, are all-reduced once (collectives of torchtitan runs in NCCL's logs).
void AdamW::clip_tensors() {
  builder_.alloc(norms_, Stream::compute);
  builder_.alloc(norm_, Stream::compute);
  pass({"aten::_foreach_norm", {&Unit::sharded_grad}, {}}, groups(1));
  scalar("aten::stack", {inout(norms_)});
  all_reduce_scalars(norms_, "all_reduce gradient norms");
  scalar("aten::linalg_vector_norm total", {in(norms_), out(norm_)});
  for (const char* op : {"aten::add eps", "aten::div", "aten::clamp"}) scalar(op, {inout(norm_)});
  pass({"aten::_foreach_mul_ clip", {}, {&Unit::sharded_grad}}, groups(1));
  builder_.free(norms_);
  builder_.free(norm_);
}

void AdamW::all_reduce_scalars(BufferId numbers, const char* label) {
  const hw::GroupShape shards = groups_of(spec_).shard;
  if (shards.ranks() == 1) return;
  const std::int64_t bytes = builder_.program().buffers[numbers].bytes;
  const CollectiveEntry entry{{hw::CollectiveKind::all_reduce, norm_type(), bytes, shards}, Communicator::shard, true, label};
  builder_.collective(builder_.collective(entry), Stream::compute, {inout(numbers)});
}

/// A kernel on a few numbers.
void AdamW::scalar(const char* op, std::initializer_list<Operand> operands) {
  hw::KernelShape shape;
  shape.dtype = hw::Dtype::fp32;
  shape.memory = hw::MemoryClass::tiny;
  shape.read_bytes = shape.write_bytes = 4;
  builder_.launch(builder_.kernel(shape, op, "elementwise_kernel"), Stream::compute, kOptimizerOp, operands);
}

}  // namespace stepcast::program
