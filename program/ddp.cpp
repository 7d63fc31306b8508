// Units, buckets, the step and the reducer's hooks of DDP.
#include "program/ddp.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace stepcast::program {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kFirstBucket = 1 * kMiB, kBucket = 25 * kMiB;  // PyTorch's defaults (distributed.py, _DEFAULT_FIRST_BUCKET_BYTES)

std::vector<ParameterTensor> tensors_of(const Unit& unit, const ModelShape& model) {
  return unit.root ? root_tensors(model) : block_tensors(model, unit.first_block);
}

}  // namespace

namespace {

/// One behind the other, whole on every rank.
void place_tensors(Unit& u, const StepSpec& spec) {
  std::int64_t begin = 0;
  for (const auto& [name, tensor] : named_tensors(spec.model, u)) {
    u.entries.push_back({name, 0, tensor.elements, u.params, begin, u.master, spec.precision.master, begin, u.flat.shard, 0, 1});
    begin += tensor.elements;
  }
}

}  // namespace

std::vector<Unit> make_ddp_units(const StepSpec& spec, Builder& builder) {
  const std::int64_t p = hw::bytes_per_element(spec.precision.param), m = hw::bytes_per_element(spec.precision.master);
  std::vector<Unit> units = blocks_and_root(spec.model);
  for (Unit& u : units) {
    const std::vector<ParameterTensor> tensors = tensors_of(u, spec.model);
    for (const ParameterTensor& tensor : tensors) u.flat.shard += tensor.elements, ++u.tensors;
    u.flat.elements = u.parameters = u.flat.shard;
    count_trained(u, tensors);
    const auto state = [&](const char* what) { return builder.buffer(u.name + what, m * u.trained_shard, Owner::optimizer); };
    const auto buffer = [&](const char* what, std::int64_t element, Owner owner) { return builder.buffer(u.name + what, element * u.flat.shard, owner); };
    u.master = buffer(".master", m, Owner::parameters);
    u.exp_avg = state(".exp_avg");
    u.exp_avg_sq = state(".exp_avg_sq");
    u.params = p != m ? buffer(".autocast", p, Owner::parameters) : u.master;
    if (builder.executable()) place_tensors(u, spec);
  }
  return units;
}

std::vector<std::vector<std::size_t>> assign_buckets(std::span<const std::int64_t> bytes, std::int64_t first_cap, std::int64_t cap) {
  std::vector<std::vector<std::size_t>> buckets;
  std::int64_t filled = 0;
  bool open = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!open) buckets.emplace_back(), filled = 0;
    buckets.back().push_back(i);
    filled += bytes[i];
    open = filled < (buckets.size() == 1 ? first_cap : cap);
  }
  return buckets;
}

Ddp::Ddp(const StepSpec& spec, Builder& builder, std::vector<Unit>& units, Work& work) : TrainingStep(spec, builder, work), units_(units), hooks_(builder) {
  name_parameters();
  if (spec.optimizer.in_backward) name_steps();
  else name_buckets();
  for (std::size_t i = 0; i < parameters_.size(); ++i) hooks_.watch(i, parameters_[i].produced);
  const std::int64_t from = hw::bytes_per_element(spec.precision.master), to = hw::bytes_per_element(spec.precision.param);
  for (const Unit& unit : units) {
    name_unit(unit.name, unit.index);
    std::vector<KernelId>& kernels = casts_.emplace_back();
    for (const ParameterTensor& tensor : tensors_of(unit, spec.model)) {
      const hw::KernelShape shape = memory_bound(hw::MemoryClass::elementwise, from * tensor.elements, to * tensor.elements);
      kernels.push_back(builder.kernel(shape, "aten::to autocast weight", "vectorized_elementwise_kernel"));
    }
  }
}

/// Parameters in reverse registration order: embedding, blocks, final norm and head were registered in this order. The optimizer reads a unit's gradients together;
/// one of them stands for all.
void Ddp::name_parameters() {
  if (scheduled_only()) return;
  const auto add = [&](Unit& unit, std::span<const BufferId> gradients) {
    const Program& program = builder_.program();
    std::unordered_map<std::string, BufferId> by_name;
    for (const BufferId gradient : gradients) {
      const std::string& label = program.buffers[gradient].label;
      by_name[label.substr(label.find(".grad.") + 6)] = gradient;
    }
    std::vector<ParameterTensor> tensors = tensors_of(unit, spec_.model);
    if (unit.root && spec_.model.tied_embeddings) tensors.front().name = "head.weight";  // where the one gradient of both is
    std::reverse(tensors.begin(), tensors.end());
    for (const ParameterTensor& tensor : tensors) {
      if (by_name.contains(tensor.name)) parameters_.push_back(parameter(by_name[tensor.name]));
    }
  };
  add(root(), work_.head_gradients());
  const std::size_t head = parameters_.size();
  for (std::size_t i = units_.size() - 1; i-- > 0;) add(units_[i], work_.block_gradients(units_[i].first_block));
  add(root(), work_.embedding_gradients());
  if (!spec_.model.tied_embeddings || root().trained_shard == 0) return;
  // A shared parameter is registered with the embedding, and ready when that is.
  const auto shared = std::find_if(parameters_.begin(), parameters_.begin() + static_cast<std::ptrdiff_t>(head),
                                   [&](const Parameter& p) { return builder_.program().buffers[p.produced].label.ends_with(".grad.head.weight"); });
  std::rotate(shared, shared + 1, parameters_.end());
  shared_ = parameters_.size() - 1;
}

Ddp::Parameter Ddp::parameter(BufferId produced) {
  const std::int64_t p = hw::bytes_per_element(spec_.precision.param), m = hw::bytes_per_element(spec_.precision.master);
  const std::int64_t elements = builder_.program().buffers[produced].bytes / p;
  const std::string label = builder_.program().buffers[produced].label;
  const auto kernel = [&](const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write) {
    return builder_.kernel(memory_bound(memory, read * elements, write * elements), op,
                           memory == hw::MemoryClass::copy ? "copy_kernel" : "vectorized_elementwise_kernel");
  };
  Parameter result;
  result.elements = elements;
  result.produced = produced;
  result.gradient = builder_.buffer(label + ".accumulated", m * elements, Owner::gradients);
  result.later = builder_.buffer(label + ".later", m * elements, Owner::gradients);
  result.cast_gradient = kernel("ToCopyBackward0 weight gradient", hw::MemoryClass::elementwise, p, m);
  result.add = kernel("AccumulateGrad add_", hw::MemoryClass::elementwise, 2 * m, m);
  result.copy = kernel("aten::mul_ into bucket", hw::MemoryClass::elementwise, m, m);
  result.divide = kernel("aten::div_ bucket view", hw::MemoryClass::elementwise, m, m);
  return result;
}

/// One rank alone is a module without the wrapper: no buckets, and hooks of the optimizer in place of the reducer's.
void Ddp::name_steps() {
  optimizer_in_backward_.emplace(spec_, builder_, Stream::compute);
  for (const Parameter& parameter : parameters_) {
    const std::string& label = builder_.program().buffers[parameter.produced].label;
    const std::string owner = label.substr(0, label.find('.'));
    const Unit& unit = *std::find_if(units_.begin(), units_.end(), [&](const Unit& u) { return u.name == owner; });
    const std::int64_t begin = builder_.executable() ? entry_of_gradient(unit, label).begin : 0;
    optimizer_in_backward_->add(owner + "." + gradient_name(label), unit, begin, gradient_part(parameter, parameter.gradient));
  }
}

/// With fixed costs each unit has one bucket.
void Ddp::name_buckets() {
  if (!scheduled_only()) {
    std::vector<std::size_t> order(parameters_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    return fill_buckets(order, spec_.policy.bucket_cap.value_or(kFirstBucket), "");
  }
  const std::int64_t m = hw::bytes_per_element(spec_.precision.master);
  for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit) add_bucket("bucket of " + unit->name, m * unit->flat.elements, 1, unit->root);
  std::rotate(buckets_.begin(), buckets_.begin() + 1, buckets_.end());  // the root's last
}

void Ddp::fill_buckets(std::span<const std::size_t> order, std::int64_t first_cap, const char* suffix) {
  buckets_.clear();
  std::vector<std::int64_t> bytes;
  for (const std::size_t i : order) bytes.push_back(builder_.program().buffers[parameters_[i].gradient].bytes);
  for (const auto& members : assign_buckets(bytes, first_cap, spec_.policy.bucket_cap.value_or(kBucket))) {
    std::int64_t total = 0;
    for (const std::size_t i : members) {
      Parameter& parameter = parameters_[order[i]];
      parameter.bucket = buckets_.size();
      parameter.begin = total / hw::bytes_per_element(spec_.precision.master);
      total += bytes[i];
    }
    add_bucket(std::string("bucket").append(std::to_string(buckets_.size())).append(suffix), total, members.size(), false);
  }
  // The optimizer reads one gradient of each unit, or the bucket that holds it, for all of them.
  for (Unit& unit : units_) {
    if (unit.trained_shard == 0) continue;
    const BufferId first = unit.root ? work_.root_gradients().front() : work_.block_gradients(unit.first_block).front();
    const auto found = std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.produced == first; });
    unit.sharded_grad = spec_.policy.gradient_as_bucket_view ? buckets_[found->bucket].memory : found->gradient;
    if (builder_.executable()) place_gradients(unit);
  }
}

/// What the optimizer of a real run reads.
void Ddp::place_gradients(Unit& unit) const {
  unit.gradients.clear();
  for (const Parameter& parameter : parameters_) {
    const std::string& label = builder_.program().buffers[parameter.produced].label;
    const std::string owner = label.substr(0, label.find('.'));
    if (owner != unit.name) continue;
    const Part from = spec_.policy.gradient_as_bucket_view ? bucket_part(parameter) : gradient_part(parameter, parameter.gradient);
    const std::int64_t begin = entry_of_gradient(unit, label).begin;
    unit.gradients.push_back({from, begin, begin});
  }
}

void Ddp::add_bucket(const std::string& name, std::int64_t bytes, std::size_t size, bool outer) {
  Bucket bucket;
  bucket.memory = builder_.buffer(name, bytes, Owner::reduction);
  bucket.all_reduce =
      builder_.collective({{hw::CollectiveKind::all_reduce, spec_.precision.master, bytes, spec_.world}, Communicator::shard, outer, "all_reduce bucket"});
  bucket.reduced = builder_.event("reduced(" + name + ")");
  bucket.size = bucket.pending = size;
  buckets_.push_back(bucket);
}

/// Once, in the forward after the first backward that reduced; later if gradients are views of the buckets that would go.
void Ddp::rebuild_buckets() {
  const bool viewed = std::any_of(parameters_.begin(), parameters_.end(), [](const Parameter& p) { return p.in_bucket; });
  if (rebuilt_ || scheduled_only() || arrival_.empty() || viewed) return;
  for (const Bucket& bucket : buckets_) builder_.free(bucket.memory);
  fill_buckets(arrival_, kFirstBucket, ".rebuilt");  // whatever cap is given (reducer.cpp, rebuild_buckets)
  setup();
  rebuilt_ = true;
}

void Ddp::setup() {
  for (const Bucket& bucket : buckets_) builder_.alloc(bucket.memory, Stream::compute);
}

// --- the step ----------------------------------------------------------------------------------------------------------------------------------------

void Ddp::forward() {
  if (!optimizer_in_backward_) builder_.host_work(hw::HostWork::ddp_pre_forward);
  rebuild_buckets();
  work_.copy_inputs();
  cast_weights(root());
  work_.embedding_forward();
  for (std::size_t i = 0; i + 1 < units_.size(); ++i) {
    open_unit(i);
    cast_weights(units_[i]);
    work_.block_forward(units_[i].first_block);
    close_unit(i);
  }
  work_.head_forward();
  // What autocast's cache alone holds goes when the forward ends; the rest is saved for the backward.
  for (const Unit& unit : units_) {
    if (!unit.root && (work_.recomputes(unit.first_block) || unit.first_block < blocks_without_backward(spec_.model))) drop_weights(unit);
  }
}

void Ddp::backward() {
  next_bucket_ = 0;
  for (Bucket& bucket : buckets_) bucket.pending = bucket.size;
  if (spec_.kernels.loss == Loss::chunked && shared_ == kNone && !work_.head_gradients().empty())
    gradient_ready(parameters_.front());  // the head's, there from the forward on
  with_hooks([&] { work_.head_backward(); }, shared_);
  for (std::size_t i = units_.size() - 1; i-- > 0;) {
    const Unit& unit = units_[i];
    if (unit.first_block < blocks_without_backward(spec_.model)) break;
    open_unit(i);
    if (work_.recomputes(unit.first_block)) cast_weights(unit);
    with_hooks([&] { work_.block_backward(unit.first_block); });
    drop_weights(unit);
    if (scheduled_only()) bucket_ready(units_.size() - 2 - i);
    close_unit(i);
  }
  with_hooks([&] { work_.embedding_backward(); });
  drop_weights(root());
  if (scheduled_only()) bucket_ready(buckets_.size() - 1);
  if (sync_gradients_ && !optimizer_in_backward_) finalize();
}

/// Autocast: each weight is cast where it is used and kept for the backward.
void Ddp::cast_weights(const Unit& unit) {
  if (!casts()) return;
  builder_.alloc(unit.params, Stream::compute);
  const std::vector<KernelId>& kernels = casts_[static_cast<std::size_t>(&unit - units_.data())];
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    extra(kernels[i], {in(unit.master), inout(unit.params)});
    builder_.computes([&] {
      const ParameterEntry& e = unit.entries[i];
      return copy_call(part(unit.master, spec_.precision.master, e.elements, e.begin), part(unit.params, spec_.precision.param, e.elements, e.begin));
    });
  }
}

void Ddp::drop_weights(const Unit& unit) {
  if (casts()) builder_.free(unit.params);
}

// --- the reducer -------------------------------------------------------------------------------------------------------------------------------------

template <class Emit>
void Ddp::with_hooks(Emit emit, std::size_t not_yet) {
  intercept(
      builder_, emit, [](std::span<const Op>, std::size_t) {},
      [&](std::span<const Op> calls, std::size_t i) {
        for (const std::size_t parameter : hooks_.ready(calls, i, not_yet)) gradient_ready(parameters_[parameter]);
      });
}

/// optimizer.step() and zero_grad() of this parameter's own optimizer.
void Ddp::step_now(Parameter& parameter) {
  optimizer_in_backward_->step(static_cast<std::size_t>(&parameter - parameters_.data()));
  builder_.free(parameter.gradient);
  parameter.exists = gradients_exist_ = false;
}

/// AccumulateGrad, then the reducer's autograd hook or that of the optimizer.
void Ddp::gradient_ready(Parameter& parameter) {
  accumulate(parameter);
  if (optimizer_in_backward_) return step_now(parameter);
  if (!sync_gradients_) return;
  builder_.host_work(hw::HostWork::ddp_gradient_hook);
  if (arrival_.size() < parameters_.size()) arrival_.push_back(static_cast<std::size_t>(&parameter - parameters_.data()));
  const BufferId bucket = buckets_[parameter.bucket].memory;
  const double share = 1.0 / spec_.world.ranks();
  if (parameter.in_bucket) {
    extra(parameter.divide, {inout(bucket)});
    builder_.computes([&] { return scale_call(bucket_part(parameter), share); });
  } else {
    extra(parameter.copy, {in(parameter.gradient), inout(bucket)});
    builder_.computes([&] { return copy_call(gradient_part(parameter, parameter.gradient), bucket_part(parameter), share); });
    if (spec_.policy.gradient_as_bucket_view) {
      builder_.free(parameter.gradient);
      parameter.in_bucket = true;
    }
  }
  bucket_ready(parameter.bucket);
}

/// The gradient in the master type becomes .grad or is added to it. Without a cast the tensor itself is taken over: free and alloc of one size stand for that,
/// except in a program that is run for real, which copies.
void Ddp::accumulate(Parameter& parameter) {
  const BufferId target = parameter.exists ? parameter.later : parameter.gradient;
  if (casts() || builder_.executable()) {
    builder_.alloc(target, Stream::compute);
    extra(parameter.cast_gradient, {in(parameter.produced), out(target)});
    builder_.computes([&] { return copy_call(part(parameter.produced, spec_.precision.param, parameter.elements), gradient_part(parameter, target)); });
    builder_.free(parameter.produced);
  } else {
    builder_.free(parameter.produced);
    builder_.alloc(target, Stream::compute);
  }
  if (parameter.exists) {
    extra(parameter.add, {inout(parameter.in_bucket ? buckets_[parameter.bucket].memory : parameter.gradient), in(target)});
    builder_.computes([&] {
      return add_call(parameter.in_bucket ? bucket_part(parameter) : gradient_part(parameter, parameter.gradient), gradient_part(parameter, target));
    });
    builder_.free(target);
  }
  parameter.exists = gradients_exist_ = true;
}

/// Buckets are all-reduced in their order: one that is ready early waits for those before it.
void Ddp::bucket_ready(std::size_t bucket) {
  if (!sync_gradients_) return;
  --buckets_[bucket].pending;
  for (; next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0; ++next_bucket_) all_reduce(buckets_[next_bucket_]);
}

void Ddp::all_reduce(Bucket& bucket) {
  stream_wait(Stream::all_reduce, Stream::compute);
  if (spec_.world.ranks() > 1) builder_.collective(bucket.all_reduce, Stream::all_reduce, {inout(bucket.memory)});
  builder_.record(bucket.reduced, Stream::all_reduce);
}

/// Compute waits for every bucket; unless gradients are views of the buckets, they are copied back.
void Ddp::finalize() {
  builder_.host_work(hw::HostWork::ddp_final_callback);
  for (const Bucket& bucket : buckets_) builder_.wait(Stream::compute, bucket.reduced);
  for (const Parameter& parameter : parameters_) {
    if (parameter.in_bucket) continue;
    extra(parameter.copy, {in(buckets_[parameter.bucket].memory), out(parameter.gradient)});
    builder_.computes([&] { return copy_call(bucket_part(parameter), gradient_part(parameter, parameter.gradient)); });
  }
}

/// set_to_none gives the gradients of the step before back; views of buckets have no memory of their own.
void Ddp::zero_grad() {
  for (Parameter& parameter : parameters_) {
    if (parameter.exists && !parameter.in_bucket) builder_.free(parameter.gradient);
    parameter.exists = parameter.in_bucket = false;
  }
  gradients_exist_ = false;
}

void Ddp::extra(KernelId kernel, std::initializer_list<Operand> operands) {
  if (!scheduled_only()) builder_.launch(kernel, Stream::compute, hw::HostWork::op_backward, operands);
}

}  // namespace stepcast::program
