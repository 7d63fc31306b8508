// Elementary kernels and linear layers.
#include "program/blocks/writer.hpp"

#include <algorithm>

#include "program/model.hpp"

namespace stepcast::program {

StepSizes::StepSizes(const StepSpec& spec)
    : tokens(program::tokens(spec.batch)),
      sequences(spec.batch.micro_batch),
      seq_len(spec.batch.seq_len),
      hidden(spec.model.hidden),
      heads(spec.model.heads),
      kv_heads(spec.model.kv_heads),
      head_dim(spec.model.head_dim),
      query_width(program::query_width(spec.model)),
      kv_width(program::kv_width(spec.model)),
      ffn(spec.model.ffn),
      vocab(spec.model.vocab),
      element(hw::bytes_per_element(spec.precision.param)),
      dtype(spec.precision.param),
      statistic(dtype == hw::Dtype::fp64 ? hw::Dtype::fp64 : hw::Dtype::fp32) {}

Slot Writer::parameter_gradient(const std::string& parameter, std::int64_t elements) {
  const auto known = std::find_if(gradients_.begin(), gradients_.end(), [&](const auto& entry) { return entry.first == parameter; });
  if (known != gradients_.end()) return known->second;
  const Slot slot = layer.tensor("grad." + parameter, elements * size.element, Owner::gradients, Lives::output);
  gradients_.emplace_back(parameter, slot);
  return slot;
}

std::vector<Slot> Writer::parameter_gradients() const {
  std::vector<Slot> slots;
  for (const auto& [name, slot] : gradients_) slots.push_back(slot);
  return slots;
}

Slot Writer::elementwise(std::string_view op, Slot result, Slots reads, Memory memory) {
  Traffic traffic{0, layer.bytes(result)};
  for (const Slot slot : reads) traffic.read += layer.bytes(slot);
  return kernel(op, result, reads, traffic, memory);
}

Slot Writer::kernel(std::string_view op, Slot result, Slots reads, Traffic traffic, Memory memory) {
  return kernel(op, memory_bound(traffic, memory), result, reads);
}

Slot Writer::kernel(std::string_view op, const hw::KernelShape& shape, Slot result, Slots reads) {
  layer.kernel(op, shape, std::span(reads.begin(), reads.size()), std::span(&result, 1));
  return result;
}

void Writer::kernel(std::string_view op, const std::vector<Slot>& results, const std::vector<Slot>& reads, Memory memory, std::uint32_t further_launches) {
  Traffic traffic;
  for (const Slot slot : reads) traffic.read += layer.bytes(slot);
  for (const Slot slot : results) traffic.write += layer.bytes(slot);
  kernel(op, results, reads, traffic, memory, further_launches);
}

hw::KernelShape Writer::memory_bound(Traffic traffic, Memory memory) const {
  hw::KernelShape shape;
  shape.kind = hw::KernelKind::memory_bound;
  shape.dtype = size.dtype;
  shape.memory = memory;
  shape.read_bytes = traffic.read;
  shape.write_bytes = traffic.write;
  return shape;
}

hw::KernelShape Writer::product(hw::Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  hw::KernelShape shape;
  shape.kind = hw::KernelKind::gemm;
  shape.dtype = dtype;
  shape.batch = batch;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  return shape;
}

Slot Writer::parameter(const std::string& name) {
  if (spec.kernels.set == KernelSet::native) return named(parameters_, "param.", name);
  const InnerUnit* unit = inner_unit_of(wrapping_, name);
  return unit && unit != inner_unit_of(wrapping_, "norm1.weight") ? named(inner_units_, "params.", unit->name) : params;
}

Slot Writer::named(std::vector<NamedSlot>& slots, const std::string& prefix, const std::string& name) {
  const auto known = std::find_if(slots.begin(), slots.end(), [&](const NamedSlot& entry) { return entry.name == name; });
  if (known != slots.end()) return known->slot;
  return slots.emplace_back(NamedSlot{name, layer.tensor(prefix + name, 0, Owner::all_gather, Lives::outside)}).slot;
}

Layer::SlotPart Writer::part(Slot slot, std::int64_t begin) const {
  if (slot == kNoSlot) return {};
  return {slot, size.dtype, begin, layer.bytes(slot) / size.element - begin};
}

Slot Writer::linear(const Linear& linear, Slot x) {
  const std::string op = (linear.bias ? "aten::addmm " : "aten::mm ") + linear.op();
  const Slot result = rows_by(linear.name, rows(linear), linear.out), weight = parameter(linear.name + ".weight");
  if (keeps_next_linear()) layer.keep(result);
  if (in_fp8(linear)) return float8_.forward(linear, x, result);
  if (!linear.bias) gemm(op, result, {x, weight}, rows(linear), linear.out, linear.in);
  const Slot bias = linear.bias ? parameter(linear.name + ".bias") : kNoSlot;
  if (linear.bias) gemm(op, result, {x, weight, bias}, rows(linear), linear.out, linear.in);
  layer.computes(Function::gemm, {part(x), part_of(weight, linear.in * linear.out), part(result), part_of(bias, linear.out)},
                 {.rows = rows(linear), .columns = linear.out, .inner = linear.in, .transpose_b = true});
  return has_adapter(spec.model, linear.name) ? adapter_.forward(linear, x, result) : result;
}

/// Selective recomputation of whole linear layers, or of the second, fourth, ... of a block (torchtitan's "op").
bool Writer::keeps_next_linear() {
  const bool first_of_two = linears_++ % 2 == 0;
  if (spec.recompute.mode != RecomputeMode::per_op) return false;
  return spec.recompute.ops == RecomputeOps::all_but_matmul || (spec.recompute.ops == RecomputeOps::all_but_every_second_matmul && first_of_two);
}

Slot Writer::linear_backward(const Linear& linear, Slot gradient, Slot x) {
  const Slot result = input_gradient(linear, gradient);
  weight_gradient(linear, gradient, x);
  return result;
}

Slot Writer::input_gradient(const Linear& linear, Slot gradient) {
  const Slot result = rows_by("d_input." + linear.name, rows(linear), linear.in);
  if (in_fp8(linear)) return float8_.input_gradient(linear, gradient, result);
  input_gradient(linear, gradient, result, false);
  return has_adapter(spec.model, linear.name) ? adapter_.input_gradient(linear, gradient, result) : result;
}

void Writer::add_input_gradient(const Linear& linear, Slot gradient, Slot sum) { input_gradient(linear, gradient, sum, true); }

void Writer::input_gradient(const Linear& linear, Slot gradient, Slot result, bool accumulate) {
  const std::string op = "MmBackward0 input " + linear.op();
  const Slot weight = parameter(linear.name + ".weight");
  if (accumulate) gradient_gemm(op, result, {gradient, weight, result}, rows(linear), linear.in, linear.out);
  else gradient_gemm(op, result, {gradient, weight}, rows(linear), linear.in, linear.out);
  layer.computes(Function::gemm, {part(gradient), part_of(weight, linear.in * linear.out), part(result), {}},
                 {.rows = rows(linear), .columns = linear.in, .inner = linear.out, .accumulate = accumulate});
}

void Writer::weight_gradient(const Linear& linear, Slot gradient, Slot x) {
  if (frozen()) {
    if (has_adapter(spec.model, linear.name)) adapter_.weight_gradients(linear, x);
    return;
  }
  const Slot weight = parameter_gradient(linear.name + ".weight", linear.in * linear.out);
  if (in_fp8(linear)) {
    float8_.weight_gradient(linear, gradient, x, weight);
  } else {
    gradient_gemm("MmBackward0 weight " + linear.op(), weight, {gradient, x}, linear.out, linear.in, rows(linear));
    layer.computes(Function::gemm, {part(gradient), part(x), part(weight), {}},
                   {.rows = linear.out, .columns = linear.in, .inner = rows(linear), .transpose_a = true});
  }
  if (!linear.bias) return;
  const Slot bias = parameter_gradient(linear.name + ".bias", linear.out);
  elementwise("aten::sum bias " + linear.op(), bias, {gradient}, Memory::normalization);
  layer.computes(Function::column_sum, {part(gradient), part(bias)}, {.rows = rows(linear), .columns = linear.out});
}

}  // namespace stepcast::program
