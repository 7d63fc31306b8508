// Names, FLOP and byte counts of kernel shapes, see kernel.hpp and docs/models.md, section "Counts". Test: tests/model/kernel_test.cpp.
#include "hw_models/kernel.hpp"

namespace stepcast::hw {

std::int64_t bytes_per_element(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp64: return 8;
    case Dtype::fp32:
    case Dtype::tf32: return 4;
    case Dtype::bf16:
    case Dtype::fp16: return 2;
    case Dtype::fp8: return 1;
  }
  return 0;
}

const char* name(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp64: return "fp64";
    case Dtype::fp32: return "fp32";
    case Dtype::tf32: return "tf32";
    case Dtype::bf16: return "bf16";
    case Dtype::fp16: return "fp16";
    case Dtype::fp8: return "fp8";
  }
  return "?";
}

const char* name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather: return "all_gather";
    case CollectiveKind::reduce_scatter: return "reduce_scatter";
    case CollectiveKind::all_reduce: return "all_reduce";
  }
  return "?";
}

/// Area of the band below the diagonal.
double attended_share(const KernelShape& shape) {
  if (!shape.causal) return 1;
  const double part = shape.window > 0 && shape.window < shape.m ? static_cast<double>(shape.window) / static_cast<double>(shape.m) : 1;
  return part * (1 - part / 2);
}

namespace {

/// Factors are converted before they are multiplied: a product of four sizes may leave 64 bits, a double keeps its magnitude.
double product(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c) * static_cast<double>(d);
}

/// Q K^T and P V: 4 b a s^2 d, less what masked tiles would be where they are skipped (docs/models.md, "Attention").
double attention_forward_flops(const KernelShape& shape) {
  return 4.0 * product(shape.batch, shape.n, shape.m, shape.m) * static_cast<double>(shape.k) * attended_share(shape);
}

std::int64_t kv_heads(const KernelShape& shape) { return shape.kv_heads > 0 ? shape.kv_heads : shape.n; }

/// Elements of Q (and of O) and of K (and of V).
double query_elements(const KernelShape& shape) { return product(shape.batch, shape.m, shape.n, shape.k); }
double key_elements(const KernelShape& shape) { return product(shape.batch, shape.m, kv_heads(shape), shape.k); }

/// Products of 8-bit operands are written in 16 bits.
double gemm_bytes(const KernelShape& shape) {
  const auto operand = static_cast<double>(bytes_per_element(shape.dtype)), result = shape.dtype == Dtype::fp8 ? 2.0 : operand;
  return operand * (product(shape.batch, shape.m, shape.k, 1) + product(shape.batch, shape.k, shape.n, 1)) + result * product(shape.batch, shape.m, shape.n, 1);
}

/// One fp32 log-sum-exp per row and head is written by the forward and read by the backward.
double statistics_bytes(const KernelShape& shape) { return 4.0 * product(shape.batch, shape.m, shape.n, 1); }

}  // namespace

Flops executed_flops(const KernelShape& shape) {
  switch (shape.kind) {
    case KernelKind::gemm: return Flops(2.0 * product(shape.batch, shape.m, shape.n, shape.k));
    case KernelKind::attention_forward: return Flops(attention_forward_flops(shape));
    case KernelKind::attention_backward: return Flops(2.5 * attention_forward_flops(shape));  // five matrix products against two
    case KernelKind::memory_bound:
    case KernelKind::copy_to_device:
    case KernelKind::copy_to_host:
    case KernelKind::fixed: return Flops(0);
  }
  return Flops(0);
}

Bytes dram_bytes(const KernelShape& shape) {
  const auto size = static_cast<double>(bytes_per_element(shape.dtype));
  switch (shape.kind) {
    case KernelKind::gemm: return Bytes(gemm_bytes(shape));
    case KernelKind::attention_forward: return Bytes(size * 2.0 * (query_elements(shape) + key_elements(shape)) + statistics_bytes(shape));
    // reads q, o, dO, k, v; writes dq, dk, dv; dq is accumulated in fp32: zeroed, written, read once more
    case KernelKind::attention_backward:
      return Bytes(size * 4.0 * (query_elements(shape) + key_elements(shape)) + 12.0 * query_elements(shape) + statistics_bytes(shape));
    case KernelKind::memory_bound:
    case KernelKind::copy_to_device:
    case KernelKind::copy_to_host: return Bytes(static_cast<double>(shape.read_bytes) + static_cast<double>(shape.write_bytes));
    case KernelKind::fixed: return Bytes(0);
  }
  return Bytes(0);
}

}  // namespace stepcast::hw
