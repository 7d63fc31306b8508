// Buckets of gradients of ZeRO stage 3: reduce-scattered on their stream into the partition. docs/zero.md, "Stage 3".
#include <algorithm>
#include <iterator>

#include "program/zero_stage3.hpp"

namespace stepcast::program {
namespace {

constexpr std::size_t kMaxReductions = 2;  // max_param_reduce_events

}  // namespace

/// reduce_independent_p_g_buckets_and_remove_grads: the copy into the bucket runs behind the reductions, on their stream.
void ZeroStage3::gradient_ready(std::size_t parameter) {
  builder_.host_work(hw::HostWork::zero_gradient_hook);
  const std::int64_t elements = parameters_[parameter].elements;
  const BufferId gradient = parameters_[parameter].gradient;
  if (!bucket_.empty() && elements_ + elements > spec_.policy.reduce_bucket_size) reduce_bucket();
  if (reduction_ != Stream::compute) stream_wait(reduction_, Stream::compute);
  if (spec_.policy.contiguous_gradients && elements <= spec_.policy.reduce_bucket_size) {
    launch(kernel("aten::copy_ into ipg_buffer", hw::MemoryClass::copy, p_ * elements, p_ * elements), {in(gradient), inout(ipg_buffer_)});
    if (reduction_ != Stream::compute) builder_.record_stream(gradient, reduction_);
    builder_.free(gradient);
  } else {
    apart_.push_back(gradient);
  }
  bucket_.push_back(parameter);
  elements_ += elements;
}

/// __reduce_and_partition_ipg_grads. The host lets at most so many reductions go on.
void ZeroStage3::reduce_bucket() {
  if (bucket_.empty()) return;
  builder_.host_work(hw::HostWork::zero_reduction);
  if (reductions_.size() > kMaxReductions) {
    builder_.host_wait(reductions_.front(), WaitReason::rate_limiter);
    reductions_.pop_front();
  }
  std::int64_t own = 0;
  for (const std::size_t i : bucket_) own += partition_elements(parameters_[i].elements, ranks_);
  const BufferId reduced = reduce_scatter(elements_, own);
  partition_gradients(reduced, own);
  if (reduced != ipg_buffer_) builder_.free(reduced);
  for (const BufferId gradient : apart_) {
    if (reduction_ != Stream::compute) builder_.record_stream(gradient, reduction_);
    builder_.free(gradient);
  }
  const EventId event = builder_.event("reduced bucket " + std::to_string(buckets_));
  builder_.record(event, reduction_);
  std::erase(reductions_, event);  // recorded in the micro-batch before, whose end the host has seen
  reductions_.push_back(event);
  bucket_.clear();
  apart_.clear();
  elements_ = 0;
  ++buckets_;
}

/// Returns the buffer that holds the reduced part. With reduce_scatter all parts are put in order in a tensor of their own; without, the contiguous buffer is all-reduced as it is.
BufferId ZeroStage3::reduce_scatter(std::int64_t elements, std::int64_t own) {
  using enum hw::MemoryClass;
  std::vector<Operand> sources;
  std::transform(apart_.begin(), apart_.end(), std::back_inserter(sources), in);
  const bool in_place = !spec_.policy.reduce_scatter && apart_.empty() && p_ == r_ && spec_.precision.param == spec_.precision.reduce;
  const std::int64_t whole = in_place ? elements : own * ranks_;
  const BufferId input = in_place ? ipg_buffer_ : number("reduce_input", r_ * whole);
  if (!in_place) {
    if (apart_.size() < bucket_.size()) sources.push_back(in(ipg_buffer_));
    sources.push_back(out(input));
    builder_.alloc(input, reduction_);
    launch(kernel("aten::cat interleave partitions", copy, p_ * elements, r_ * whole), sources);
  }
  launch(kernel("aten::div_ gradients", elementwise, r_ * whole, r_ * whole), {inout(input)});
  if (ranks_ == 1) return input;
  const auto kind = spec_.policy.reduce_scatter ? hw::CollectiveKind::reduce_scatter : hw::CollectiveKind::all_reduce;
  const CollectiveEntry entry{{kind, spec_.precision.reduce, r_ * whole, spec_.world},
                              Communicator::shard,
                              false,
                              kind == hw::CollectiveKind::reduce_scatter ? "reduce_scatter bucket" : "all_reduce bucket"};
  builder_.collective(builder_.collective(entry), reduction_, {inout(input)});
  return input;
}

/// partition_grads: copied in the first micro-batch, added in the others.
void ZeroStage3::partition_gradients(BufferId reduced, std::int64_t own) {
  if (optimizer_.offloaded()) return host_gradients_.add(buckets_, std::span(&reduced, 1), own, micro_batch_ > 0, last_micro_batch());
  const bool adds = micro_batch_ > 0;
  const KernelId id = kernel(adds ? "aten::add_ own gradients" : "aten::copy_ own gradients", adds ? hw::MemoryClass::elementwise : hw::MemoryClass::copy,
                             (r_ + (adds ? p_ : 0)) * own, p_ * own);
  launch(id, {in(reduced), inout(gradient_partition_)});
}

/// independent_gradient_partition_epilogue: the host waits for the reductions.
void ZeroStage3::epilogue() {
  builder_.host_work(hw::HostWork::zero_backward_epilogue);
  reduce_bucket();
  if (reduction_ == Stream::compute) return;
  builder_.record(drained_, reduction_);
  builder_.host_wait(drained_, WaitReason::synchronize);
  reductions_.clear();
}

KernelId ZeroStage3::kernel(const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write) {
  return builder_.kernel({.kind = hw::KernelKind::memory_bound, .memory = memory, .read_bytes = read, .write_bytes = write}, op,
                         memory == hw::MemoryClass::copy ? "copy_kernel" : "vectorized_elementwise_kernel");
}

/// A buffer of this bucket, which has the same size in every micro-batch.
BufferId ZeroStage3::number(const char* what, std::int64_t bytes) {
  return builder_.buffer(std::string("bucket").append(std::to_string(buckets_)).append(".").append(what), bytes, Owner::reduction);
}

}  // namespace stepcast::program
