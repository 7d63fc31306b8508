// Norm, unscaling, update, copy back. See zero_optimizer.hpp.
#include "program/zero_optimizer.hpp"

#include "program/host_copies.hpp"

namespace stepcast::program {
namespace {

constexpr std::int64_t kDouble = 8;  // norms are taken of gradients in fp64

}  // namespace

ZeroOptimizer::ZeroOptimizer(const StepSpec& spec, Builder& builder, const Unit& partition, std::int64_t tensors, BufferId gradients, BufferId bit16)
    : spec_(spec),
      builder_(builder),
      units_{partition},
      tensors_(tensors),
      elements_(partition.flat.shard),
      p_(hw::bytes_per_element(spec.precision.param)),
      m_(hw::bytes_per_element(spec.precision.master)),
      gradients_(gradients),
      bit16_(bit16),
      flat_(builder.buffer("partition.flat_gradient", p_ * elements_, Owner::gradients)),
      staged_(builder.buffer("partition.staged", m_ * elements_, Owner::workspace)),
      norm_(builder.buffer("partition.norm", 4, Owner::workspace)),
      done_(builder.event("partition on the host")),
      adamw_(spec, builder, units_) {}

void ZeroOptimizer::setup() {
  if (!offloaded()) builder_.alloc(units_.front().master, Stream::compute);
}

void ZeroOptimizer::step(bool gives_back) {
  builder_.host_work(hw::HostWork::zero_step);
  if (offloaded()) update_on_host();
  else update_on_device(gives_back);
}

KernelId ZeroOptimizer::kernel(const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write) {
  return builder_.kernel({.kind = hw::KernelKind::memory_bound, .memory = memory, .read_bytes = read, .write_bytes = write}, op,
                         memory == hw::MemoryClass::copy ? "copy_kernel" : "vectorized_elementwise_kernel");
}

void ZeroOptimizer::update_on_device(bool gives_back) {
  const BufferId gradient = units_.front().sharded_grad;
  norm_of_gradients();
  fp32_gradient(gives_back);
  launch(kernel("aten::mul_ unscale and clip", hw::MemoryClass::elementwise, m_ * elements_, m_ * elements_), {inout(gradient)});
  adamw_.update();
  builder_.free(gradient);
  launch(kernel("aten::copy_ updated partition", hw::MemoryClass::elementwise, m_ * elements_, p_ * elements_), {in(units_.front().master), inout(bit16_)});
}

/// Tensor by tensor. With fp16 another pass looks for overflow, and the host waits for its verdict before it goes on.
void ZeroOptimizer::norm_of_gradients() {
  using enum hw::MemoryClass;
  builder_.alloc(norm_, Stream::compute);
  const std::int64_t each = (elements_ + tensors_ - 1) / tensors_;  // as if of one size
  const KernelId to_double = kernel("aten::to double gradient", elementwise, p_ * each, kDouble * each);
  const KernelId norm = kernel("aten::linalg_vector_norm", normalization, kDouble * each, kDouble);
  if (spec_.precision.param == hw::Dtype::fp16) {
    launch(kernel("aten::isfinite", normalization, p_ * elements_, 4), {in(gradients_), out(norm_)});
    combine_norms();
    synchronize();
  }
  for (std::int64_t t = 0; t < tensors_; ++t) {
    launch(to_double, {in(gradients_), inout(norm_)});
    launch(norm, {inout(norm_)});
  }
  combine_norms();
  builder_.free(norm_);
  if (spec_.optimizer.clip_host_sync) synchronize();
}

void ZeroOptimizer::combine_norms() {
  if (spec_.world.ranks() > 1) {
    const CollectiveEntry entry{{hw::CollectiveKind::all_reduce, hw::Dtype::fp32, 4, spec_.world}, Communicator::shard, true, "all_reduce gradient norm"};
    builder_.collective(builder_.collective(entry), Stream::compute, {inout(norm_)});
  }
  for (int op = 0; op < (spec_.optimizer.clip_grad_norm ? 3 : 1); ++op) launch(kernel("aten::norm scalar", hw::MemoryClass::tiny, 4, 4), {inout(norm_)});
}

/// flatten(gradients).to(fp32).
void ZeroOptimizer::fp32_gradient(bool gives_back) {
  const BufferId gradient = units_.front().sharded_grad, flat = p_ == m_ ? gradient : flat_;
  builder_.alloc(flat, Stream::compute);
  launch(kernel("aten::cat flatten gradients", hw::MemoryClass::copy, p_ * elements_, p_ * elements_), {in(gradients_), out(flat)});
  if (gives_back) builder_.free(gradients_);
  if (flat == gradient) return;
  builder_.alloc(gradient, Stream::compute);
  launch(kernel("aten::to fp32 gradient", hw::MemoryClass::elementwise, p_ * elements_, m_ * elements_), {in(flat), out(gradient)});
  builder_.free(flat);
}

/// The gradients have been copied during the backward, their norms taken there. What remains of the norm is one number.
void ZeroOptimizer::update_on_host() {
  builder_.alloc(norm_, Stream::compute);
  launch(kernel("aten::fill_ norm", hw::MemoryClass::tiny, 0, 4), {out(norm_)});
  combine_norms();
  builder_.free(norm_);
  synchronize();
  builder_.host_work(hw::HostWork::cpu_pass, mebi_elements(elements_));  // unscale and clip
  cpu_adam(builder_, OptimizerImpl::fused, elements_);
  write_back_from_host();
}

/// Stages 1 and 2 copy in fp32 and cast on the device; stage 3 casts on the host. Both copies block.
void ZeroOptimizer::write_back_from_host() {
  if (spec_.policy.framework == Framework::zero3) {
    builder_.host_work(hw::HostWork::cpu_pass, mebi_elements(elements_));
    if (spec_.policy.cpu_offload == CpuOffload::parameters) return;
    launch(copy_to_device(builder_, p_ * elements_), {inout(bit16_)});
    return synchronize();
  }
  builder_.alloc(staged_, Stream::compute);
  launch(copy_to_device(builder_, m_ * elements_), {out(staged_)});
  synchronize();
  launch(kernel("aten::copy_ updated partition", hw::MemoryClass::elementwise, m_ * elements_, p_ * elements_), {in(staged_), inout(bit16_)});
  builder_.free(staged_);
}

void ZeroOptimizer::synchronize() {
  builder_.record(done_, Stream::compute);
  builder_.host_wait(done_, WaitReason::synchronize);
}

}  // namespace stepcast::program
