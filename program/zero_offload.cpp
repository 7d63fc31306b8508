// See zero_offload.hpp.
#include "program/zero_offload.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "program/host_copies.hpp"

namespace stepcast::program {

/// async_accumulate_grad_in_cpu_via_gpu and async_inplace_copy_grad_to_fp32_buffer_from_gpu: the sum over micro-batches stays on the host in the compute type and is fetched to be
/// added to; the last goes there in fp32, after its norm.
void HostGradients::add(std::size_t bucket, std::span<const BufferId> sources, std::int64_t own, bool adds, bool last) {
  using enum hw::MemoryClass;
  const std::int64_t p = hw::bytes_per_element(spec_.precision.param) * own, m = hw::bytes_per_element(spec_.precision.master) * own;
  const auto kernel = [&](const char* op, hw::MemoryClass memory, std::int64_t read, std::int64_t write) {
    return builder_.kernel({.kind = hw::KernelKind::memory_bound, .memory = memory, .read_bytes = read, .write_bytes = write}, op,
                           memory == copy ? "copy_kernel" : "vectorized_elementwise_kernel");
  };
  const std::string label = std::string("bucket").append(std::to_string(bucket));
  const BufferId sum = builder_.buffer(label + ".own_sum", p, Owner::reduction), fp32 = builder_.buffer(label + ".own_fp32", m, Owner::reduction);
  const std::span<const BufferId> of_sum(&sum, 1), of_fp32(&fp32, 1);
  builder_.alloc(sum, stream_);
  if (adds) {
    launch(copy_to_device(builder_, p), {}, of_sum);
    launch(kernel("aten::add_ own gradients", elementwise, 2 * p, p), sources, of_sum);
  } else {
    launch(kernel("aten::copy_ own gradients", copy, p, p), sources, of_sum);
  }
  if (last) {
    launch(kernel("aten::linalg_vector_norm", normalization, p, 0), of_sum, {});
    builder_.alloc(fp32, stream_);
    launch(kernel("aten::to fp32 gradient", elementwise, p, m), of_sum, of_fp32);
    launch(copy_to_host(builder_, m), of_fp32, {});
    builder_.free(fp32);
  } else {
    launch(copy_to_host(builder_, p), of_sum, {});
  }
  builder_.free(sum);
}

void HostGradients::launch(KernelId id, std::span<const BufferId> reads, std::span<const BufferId> updates) {
  std::vector<Operand> operands;
  std::transform(reads.begin(), reads.end(), std::back_inserter(operands), in);
  std::transform(updates.begin(), updates.end(), std::back_inserter(operands), inout);
  builder_.launch(id, stream_, hw::HostWork::op_forward, operands);
}

}  // namespace stepcast::program
