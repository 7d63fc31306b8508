// Forms: profiles of PyTorch 2.x. Test: tests/unit/chrome_writer_test.cpp.
#include "trace/kernel_arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "hw_models/memory_class_names.hpp"

namespace stepcast::trace {

namespace {

const char* element_type(hw::Dtype dtype) {
  switch (dtype) {
    case hw::Dtype::fp64: return "double";
    case hw::Dtype::fp32:
    case hw::Dtype::tf32: return "float";
    case hw::Dtype::bf16: return "c10::BFloat16";
    case hw::Dtype::fp16: return "c10::Half";
    case hw::Dtype::fp8: return "c10::Float8_e4m3fn";
  }
  return "";
}

using Shapes = std::vector<std::vector<std::int64_t>>;

Shapes product(const hw::KernelShape& s, std::string_view op) {
  Shapes shapes;
  const bool batched = s.batch > 1;
  if (op.starts_with("aten::addmm")) shapes.push_back({s.n});
  shapes.push_back(batched ? std::vector{s.batch, s.m, s.k} : std::vector{s.m, s.k});
  shapes.push_back(batched ? std::vector{s.batch, s.k, s.n} : std::vector{s.k, s.n});
  return shapes;
}

Shapes attention(const hw::KernelShape& s) {
  const std::vector queries{s.batch, s.n, s.m, s.k}, keys{s.batch, s.kv_heads, s.m, s.k};
  if (s.kind == hw::KernelKind::attention_backward) return {queries, queries, keys, keys};
  return {queries, keys, keys};
}

}  // namespace

std::string operand_arguments(const hw::KernelShape& shape, std::string_view op) {
  const bool fused = shape.kind == hw::KernelKind::attention_forward || shape.kind == hw::KernelKind::attention_backward;
  if (!fused && shape.kind != hw::KernelKind::gemm) return "";
  const Shapes shapes = fused ? attention(shape) : product(shape, op);
  std::vector<std::string> lists, types(shapes.size(), fmt::format("\"{}\"", element_type(shape.dtype)));
  for (const auto& sizes : shapes) lists.push_back(fmt::format("[{}]", fmt::join(sizes, ", ")));
  return fmt::format(",\"Input Dims\":[{}],\"Input type\":[{}]", fmt::join(lists, ", "), fmt::join(types, ", "));
}

std::string traffic_arguments(const hw::KernelShape& shape) {
  if (shape.kind != hw::KernelKind::memory_bound) return "";
  return fmt::format(",\"Memory class\":\"{}\",\"Read bytes\":{},\"Written bytes\":{}", hw::name(shape.memory), shape.read_bytes, shape.write_bytes);
}

}  // namespace stepcast::trace
