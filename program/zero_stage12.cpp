// Hooks, buckets and the gathering of updated parameters of ZeRO stages 1 and 2.
#include "program/zero_stage12.hpp"

#include <algorithm>
#include <string>

#include "program/groups.hpp"

namespace stepcast::program {
namespace {

constexpr std::int64_t kAlignment = 2;  // elements; nccl_start_alignment_factor

std::vector<ZeroParameter> trained(std::vector<ZeroParameter> parameters) {
  std::erase_if(parameters, [](const ZeroParameter& parameter) { return parameter.frozen; });
  return parameters;
}

std::int64_t share(std::int64_t elements, std::int64_t ranks) { return partition_elements(elements, ranks); }

}  // namespace

std::int64_t ZeroStage12::partition_of(const StepSpec& spec) {
  return kAlignment * partition_elements(trained_parameters(spec.model), kAlignment * partition_group(spec).ranks());
}

BufferId ZeroStage12::parameters_of(const StepSpec& spec, Builder& builder) {
  return builder.buffer("bit16_parameters", hw::bytes_per_element(spec.precision.param) * partition_group(spec).ranks() * partition_of(spec),
                        Owner::parameters);
}

ZeroStage12::ZeroStage12(const StepSpec& spec, Builder& builder, const std::vector<Unit>& units, Work& work)
    : TrainingStep(spec, builder, work),
      units_(units),
      p_(hw::bytes_per_element(spec.precision.param)),
      r_(hw::bytes_per_element(spec.precision.reduce)),
      m_(hw::bytes_per_element(spec.precision.master)),
      group_(partition_group(spec)),
      ranks_(group_.ranks()),
      reduction_(spec.policy.overlap_comm ? Stream::all_reduce : Stream::compute),
      flat_parameters_(parameters_of(spec, builder)),
      frozen_parameters_(builder.buffer("frozen_parameters", p_ * (parameters(spec.model) - trained_parameters(spec.model)), Owner::parameters)),
      gradient_partition_(builder.buffer("gradient_partition", p_ * partition_of(spec), Owner::gradients)),
      new_partition_(builder.buffer("gradient_partition.new", p_ * partition_of(spec), Owner::gradients)),
      parameters_(trained(zero_parameters(spec, builder, units, work))),
      hooks_(builder),
      optimizer_(spec, builder, make_partition(spec, builder, partition_of(spec)), share(static_cast<std::int64_t>(parameters_.size()), ranks_),
                 gradient_partition_, flat_parameters_),
      host_gradients_(spec, builder, reduction_),
      drained_(builder.event("device drained")) {
  for (const Unit& unit : units) name_unit(unit.name, unit.index);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.watch(i, parameters_[i].gradient);
    accumulated_.push_back(builder.buffer(parameters_[i].name + ".accumulated", p_ * parameters_[i].elements, Owner::gradients));
    if (builder.program().buffers[parameters_[i].gradient].label.ends_with(".grad.head.weight")) head_weight_ = i;
  }
  if (spec.model.tied_embeddings && !embedding_is_frozen(spec.model)) shared_ = head_weight_;
  for (int i = 0; spec.policy.contiguous_gradients && i < (spec.policy.overlap_comm ? 2 : 1); ++i)
    ipg_buffers_.push_back(builder.buffer("ipg_buffer" + std::to_string(i), p_ * spec.policy.reduce_bucket_size, Owner::reduction));
}

void ZeroStage12::setup() {
  builder_.alloc(flat_parameters_, Stream::compute);
  if (builder_.program().buffers[frozen_parameters_].bytes > 0) builder_.alloc(frozen_parameters_, Stream::compute);
  optimizer_.setup();
}

void ZeroStage12::forward() {
  work_.copy_inputs();
  work_.embedding_forward();
  for (std::size_t i = 0; i + 1 < units_.size(); ++i) {
    open_unit(i);
    work_.block_forward(units_[i].first_block);
    close_unit(i);
  }
  work_.head_forward();
}

void ZeroStage12::backward() {
  buckets_ = ipg_index_ = 0;
  if (reduces()) {
    for (const BufferId buffer : ipg_buffers_) builder_.alloc(buffer, Stream::compute);
  }
  if (spec_.kernels.loss == Loss::chunked && shared_ != head_weight_ && !work_.head_gradients().empty())
    gradient_ready(head_weight_);  // it is there from the forward on
  with_hooks([&] { work_.head_backward(); }, shared_);
  for (std::size_t i = units_.size() - 1; i-- > 0;) {
    if (units_[i].first_block < blocks_without_backward(spec_.model)) break;
    open_unit(i);
    with_hooks([&] { work_.block_backward(units_[i].first_block); });
    close_unit(i);
  }
  with_hooks([&] { work_.embedding_backward(); });
  if (!reduces()) return;
  if (!reduces_in_hooks()) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) add_to_bucket(i);
  }
  epilogue();
}

template <class Emit>
void ZeroStage12::with_hooks(Emit emit, std::size_t not_yet) {
  intercept(
      builder_, emit, [](std::span<const Op>, std::size_t) {},
      [&](std::span<const Op> calls, std::size_t i) {
        for (const std::size_t parameter : hooks_.ready(calls, i, not_yet)) gradient_ready(parameter);
      });
}

void ZeroStage12::gradient_ready(std::size_t parameter) {
  if (accumulates()) accumulate(parameter);
  if (reduces() && reduces_in_hooks()) add_to_bucket(parameter);
}

/// Stage 1 over several micro-batches. The first gradient is taken over: the free and the alloc of one size stand for one tensor.
void ZeroStage12::accumulate(std::size_t parameter) {
  const BufferId produced = parameters_[parameter].gradient, kept = accumulated_[parameter];
  if (micro_batch_ == 0) {
    builder_.free(produced);
    builder_.alloc(kept, Stream::compute);
    return;
  }
  const std::int64_t bytes = p_ * parameters_[parameter].elements;
  builder_.launch(kernel("AccumulateGrad add_", hw::MemoryClass::elementwise, 2 * bytes, bytes), Stream::compute, hw::HostWork::op_backward,
                  {inout(kept), in(produced)});
  builder_.free(produced);
}

/// reduce_independent_p_g_buckets_and_remove_grads. A gradient larger than the bucket is averaged where it is.
void ZeroStage12::add_to_bucket(std::size_t parameter) {
  builder_.host_work(hw::HostWork::zero_gradient_hook);
  const std::int64_t elements = parameters_[parameter].elements;
  if (bucket_.elements > 0 && bucket_.elements + elements > spec_.policy.reduce_bucket_size) reduce_bucket();
  const BufferId gradient = source(parameter);
  if (ipg_buffers_.empty() || elements > spec_.policy.reduce_bucket_size) {
    bucket_.gradients.push_back(gradient);
  } else {
    builder_.launch(kernel("aten::copy_ into ipg_buffer", hw::MemoryClass::copy, p_ * elements, p_ * elements), Stream::compute, hw::HostWork::op_backward,
                    {in(gradient), inout(ipg_buffers_[ipg_index_])});
    builder_.free(gradient);
    bucket_.copied = true;
  }
  bucket_.elements += elements;
}

/// reduce_ipg_grads. With overlap compute waits for the reduction before this one, so that the other buffer can be filled.
void ZeroStage12::reduce_bucket() {
  if (bucket_.elements == 0) return;
  builder_.host_work(hw::HostWork::zero_reduction);
  if (reduction_ != Stream::compute) {
    stream_wait(reduction_, Stream::compute);
    stream_wait(Stream::compute, reduction_);
  }
  std::vector<BufferId> sources = bucket_.gradients;
  if (bucket_.copied) sources.push_back(ipg_buffers_[ipg_index_]);
  average(sources, bucket_.elements);
  if (optimizer_.offloaded()) host_gradients_.add(buckets_, sources, share(bucket_.elements, ranks_), stage2() && micro_batch_ > 0, last_micro_batch());
  else keep_own_part(sources, bucket_.elements);
  for (const BufferId gradient : bucket_.gradients) {
    if (reduction_ != Stream::compute) builder_.record_stream(gradient, reduction_);
    builder_.free(gradient);
  }
  if (ipg_buffers_.size() > 1) ipg_index_ = 1 - ipg_index_;
  bucket_ = {};
  ++buckets_;
}

/// average_tensor: divided, then all-reduced where it is, or (reduce_scatter: the slices of all owners flattened into one tensor, of which each rank copies its own back).
void ZeroStage12::average(std::span<const BufferId> sources, std::int64_t elements) {
  using enum hw::MemoryClass;
  const std::int64_t bytes = p_ * elements;
  launch(kernel("aten::div_ gradients", elementwise, bytes, bytes), {}, sources);
  const bool flattens = spec_.policy.reduce_scatter || sources.size() > 1;
  const BufferId flat = flattens ? number("flattened", bytes) : sources.front();
  if (flattens) {
    builder_.alloc(flat, reduction_);
    launch(kernel("aten::cat flatten bucket", copy, bytes, bytes), sources, std::span(&flat, 1));
  }
  const bool casts = r_ != p_ || spec_.precision.reduce != spec_.precision.param;
  const BufferId sent = casts ? number("communicated", r_ * elements) : flat;
  if (casts) {
    builder_.alloc(sent, reduction_);
    launch(kernel("aten::to communication type", elementwise, bytes, r_ * elements), std::span(&flat, 1), std::span(&sent, 1));
  }
  if (spec_.world.ranks() > 1) {
    const CollectiveEntry entry{
        {hw::CollectiveKind::all_reduce, spec_.precision.reduce, r_ * elements, spec_.world}, Communicator::shard, false, "all_reduce bucket"};
    builder_.collective(builder_.collective(entry), reduction_, {inout(sent)});
  }
  if (casts) {
    launch(kernel("aten::copy_ from communication type", elementwise, r_ * elements, bytes), std::span(&sent, 1), std::span(&flat, 1));
    builder_.free(sent);
  }
  if (!flattens) return;
  const std::int64_t back = spec_.policy.reduce_scatter ? p_ * share(elements, ranks_) : bytes;
  launch(kernel("aten::copy_ averaged gradients", copy, back, back), std::span(&flat, 1), sources);
  builder_.free(flat);
}

/// copy_grads_in_partition. Which parameters are a rank's own depends on the rank; each bucket is taken to hold as much of everyone's.
void ZeroStage12::keep_own_part(std::span<const BufferId> sources, std::int64_t elements) {
  const BufferId target = micro_batch_ == 0 || !stage2() ? gradient_partition_ : new_partition_;
  if (buckets_ == 0) builder_.alloc(target, reduction_);
  const std::int64_t bytes = p_ * share(elements, ranks_);
  launch(kernel("aten::copy_ own gradients", hw::MemoryClass::copy, bytes, bytes), sources, std::span(&target, 1));
}

/// independent_gradient_partition_epilogue. With overlap the host waits for the whole device.
void ZeroStage12::epilogue() {
  builder_.host_work(hw::HostWork::zero_backward_epilogue);
  reduce_bucket();
  if (reduction_ != Stream::compute) {
    stream_wait(Stream::compute, reduction_);
    builder_.record(drained_, Stream::compute);
    builder_.host_wait(drained_, WaitReason::synchronize);
  }
  if (stage2() && micro_batch_ > 0 && !optimizer_.offloaded()) {
    const std::int64_t bytes = p_ * partition_of(spec_);
    builder_.launch(kernel("aten::add_ averaged gradients", hw::MemoryClass::elementwise, 2 * bytes, bytes), Stream::compute, hw::HostWork::op_backward,
                    {inout(gradient_partition_), in(new_partition_)});
    builder_.free(new_partition_);
  }
  for (const BufferId buffer : ipg_buffers_) builder_.free(buffer);
}

void ZeroStage12::optimizer() {
  optimizer_.step(true);
  gather_parameters();
}

/// all_gather_dp_groups: parts of at most allgather_bucket_size elements, one after the other on compute.
void ZeroStage12::gather_parameters() {
  if (ranks_ == 1) return;
  const std::int64_t partition = partition_of(spec_);
  const std::int64_t parts = std::max<std::int64_t>(1, partition * ranks_ / spec_.policy.allgather_bucket_size);
  const std::int64_t size = std::max(partition / parts / kAlignment * kAlignment, std::min(partition, kAlignment));
  for (std::int64_t begin = 0; begin < partition; begin += size) {
    const std::int64_t rest = partition - begin, elements = rest < 2 * size ? rest : size;  // the last part takes what is left
    const CollectiveEntry entry{{hw::CollectiveKind::all_gather, spec_.precision.param, p_ * elements * ranks_, group_},
                                group_ == spec_.world ? Communicator::shard : Communicator::sub_shard,
                                false,
                                "all_gather updated parameters"};
    builder_.collective(builder_.collective(entry), Stream::compute, {inout(flat_parameters_)});
    if (elements == rest) return;
  }
}

KernelId ZeroStage12::kernel(const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write) {
  return builder_.kernel({.kind = hw::KernelKind::memory_bound, .memory = memory, .read_bytes = read, .write_bytes = write}, op,
                         memory == hw::MemoryClass::copy ? "copy_kernel" : "vectorized_elementwise_kernel");
}

/// On the reduction stream.
void ZeroStage12::launch(KernelId id, std::span<const BufferId> reads, std::span<const BufferId> updates) {
  std::vector<Operand> operands;
  std::transform(reads.begin(), reads.end(), std::back_inserter(operands), in);
  std::transform(updates.begin(), updates.end(), std::back_inserter(operands), inout);
  builder_.launch(id, reduction_, hw::HostWork::op_forward, operands);
}

/// A buffer of this bucket, which has the same size in every micro-batch.
BufferId ZeroStage12::number(const char* what, std::int64_t bytes) {
  return builder_.buffer(std::string("bucket").append(std::to_string(buckets_)).append(".").append(what), bytes, Owner::reduction);
}

}  // namespace stepcast::program
