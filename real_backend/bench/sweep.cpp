// The cases of the sweep, and those of a program.
#include <algorithm>
#include <set>
#include <utility>

#include "real_backend/bench/kernels.hpp"

namespace stepcast::real::bench {
namespace {

using program::Attributes;
using program::Function;

class Sweep {
 public:
  explicit Sweep(hw::Dtype dtype) : dtype_(dtype), element_(hw::bytes_per_element(dtype)) {}

  /// GPUs take 16 times as much at a time in each direction of a product, and 64 times as much memory.
  std::vector<KernelCase> all(bool large) {
    const std::int64_t by = large ? 16 : 1;
    for (const std::int64_t n : {64, 128, 256, 512, 1024}) gemm(by * n, by * n, by * n);
    for (const std::int64_t k : {64, 256, 1024}) gemm(by * 256, by * 1024, by * k), gemm(by * 2048, by * 64, by * k);
    for (const std::int64_t s : {64, 128, 256, 512}) attention(by * s);
    for (std::int64_t n = 1 << 12; n <= (large ? 1 << 28 : 1 << 22); n *= 4) memory_bound(n);
    return std::move(cases_);
  }
  KernelCase product(bool large) {
    gemm(large ? 4096 : 256, large ? 4096 : 256, large ? 4096 : 256);
    return std::move(cases_.front());
  }

 private:
  [[nodiscard]] program::Part part(std::uint32_t buffer, std::int64_t count) const { return {buffer, dtype_, 0, count}; }
  [[nodiscard]] program::Part statistic(std::uint32_t buffer, std::int64_t count) const {
    return {buffer, dtype_ == hw::Dtype::fp64 ? hw::Dtype::fp64 : hw::Dtype::fp32, 0, count};
  }

  /// As a linear layer: x W', and its weight's gradient.
  void gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
    const hw::KernelShape shape{.kind = hw::KernelKind::gemm, .dtype = dtype_, .m = m, .n = n, .k = k};
    cases_.push_back(
        {shape, "", {Function::gemm, {part(0, m * k), part(1, k * n), part(2, m * n), {}}, {.rows = m, .columns = n, .inner = k, .transpose_b = true}}});
  }

  void attention(std::int64_t s) {
    constexpr std::int64_t kHeads = 8, kWidth = 64;
    hw::KernelShape shape{.kind = hw::KernelKind::attention_forward, .dtype = dtype_, .attention = hw::AttentionKernel::flash2, .causal = true};
    shape.m = s, shape.n = kHeads, shape.k = kWidth, shape.kv_heads = kHeads;
    const Attributes at{
        .rows = s, .heads = kHeads, .kv_heads = kHeads, .head_dim = kWidth, .seq_len = s, .stride = kHeads * kWidth, .kv_stride = kHeads * kWidth};
    const std::int64_t n = s * kHeads * kWidth;
    cases_.push_back({shape, "", {Function::attention, {part(0, n), part(1, n), part(2, n), part(3, n), statistic(4, s * kHeads)}, at}});
    shape.kind = hw::KernelKind::attention_backward;
    cases_.push_back({shape,
                      "",
                      {Function::attention_backward,
                       {part(0, n), part(1, n), part(2, n), part(3, n), part(4, n), statistic(5, s * kHeads), part(6, n), part(7, n), part(8, n)},
                       at}});
  }

  void add(hw::MemoryClass memory, std::int64_t read, std::int64_t write, program::Call call) {
    cases_.push_back(
        {{.kind = hw::KernelKind::memory_bound, .dtype = dtype_, .memory = memory, .read_bytes = read, .write_bytes = write}, "", std::move(call)});
  }

  void memory_bound(std::int64_t n) {
    constexpr std::int64_t kWidth = 512;
    const std::int64_t bytes = n * element_, rows = n / kWidth;
    const Attributes at{.rows = rows, .columns = kWidth};
    add(hw::MemoryClass::elementwise, 2 * bytes, bytes, {Function::sum, {part(0, n), part(1, n), part(2, n)}, {}});
    add(hw::MemoryClass::normalization, bytes, bytes, {Function::norm, {part(0, n), part(1, kWidth), {}, part(2, n), statistic(3, rows)}, at});
    add(hw::MemoryClass::softmax, 2 * bytes, bytes,
        {Function::cross_entropy_backward, {part(0, n), {1, hw::Dtype::fp64, 0, rows}, statistic(2, rows), part(0, n)}, at});
    add(hw::MemoryClass::indexing, bytes, bytes, {Function::embedding, {{0, hw::Dtype::fp64, 0, rows}, part(1, n), part(2, n)}, at});
    add(hw::MemoryClass::optimizer, 4 * bytes, 3 * bytes, {Function::adamw, {part(0, n), part(1, n), part(2, n), part(3, n)}, {}});
    add(hw::MemoryClass::copy, bytes, bytes, {Function::copy, {part(0, n), part(1, n)}, {}});
  }

  hw::Dtype dtype_;
  std::int64_t element_;
  std::vector<KernelCase> cases_;
};

}  // namespace

std::vector<KernelCase> sweep(hw::Dtype dtype, bool large) { return Sweep(dtype).all(large); }

KernelCase product(hw::Dtype dtype, bool large) { return Sweep(dtype).product(large); }

std::vector<KernelCase> kernels_of(const program::Program& program) {
  std::vector<KernelCase> result;
  std::set<std::pair<hw::KernelShape, std::string>> known;
  for (const program::Op& op : program.ops) {
    if (op.kind != program::OpKind::launch || op.count == 0) continue;
    const program::KernelEntry& kernel = program.kernels[op.id];
    if (hw::is_host_copy(kernel.shape.kind) || !known.insert({kernel.shape, kernel.op}).second) continue;
    result.push_back({kernel.shape, kernel.op, program.calls[op.count - 1]});
  }
  return result;
}

}  // namespace stepcast::real::bench
