// Products and sums of adapters; r = rank, T = rows of x.
#include "program/blocks/adapter.hpp"

#include "program/blocks/writer.hpp"

namespace stepcast::program {

bool Adapter::compiled() const { return w_.spec.kernels.set == KernelSet::pytorch_compile; }

Slot Adapter::forward(const Linear& linear, Slot x, Slot output) {
  const std::int64_t rows = w_.rows(linear), rank = w_.spec.model.lora_rank;
  Tensors& t = tensors_[linear.name];
  t.reduced = w_.gemm("aten::mm lora_a " + linear.op(), w_.rows_by(linear.name + ".lora_a", rows, rank), {x, w_.parameter(linear.name + ".lora_a.weight")},
                      rows, rank, linear.in);
  Slot added = w_.gemm("aten::mm lora_b " + linear.op(), w_.rows_by(linear.name + ".lora_b", rows, linear.out),
                       {t.reduced, w_.parameter(linear.name + ".lora_b.weight")}, rows, linear.out, rank);
  const Slot sum = w_.rows_by(linear.name + ".with_lora", rows, linear.out);
  if (compiled()) return w_.elementwise("triton_poi_fused_mul_add lora", sum, {output, added});
  added = w_.elementwise("aten::mul lora scale", w_.rows_by(linear.name + ".lora", rows, linear.out), {added});
  return w_.add("aten::add lora", sum, output, added);
}

Slot Adapter::input_gradient(const Linear& linear, Slot gradient, Slot of_layer) {
  const std::int64_t rows = w_.rows(linear), rank = w_.spec.model.lora_rank;
  Tensors& t = tensors_[linear.name];
  t.d_scaled =
      w_.elementwise(compiled() ? "triton_poi_fused_mul lora" : "MulBackward0 lora scale", w_.rows_by("d_lora." + linear.name, rows, linear.out), {gradient});
  t.d_reduced = w_.gradient_gemm("MmBackward0 input lora_b " + linear.op(), w_.rows_by("d_lora_a." + linear.name, rows, rank),
                                 {t.d_scaled, w_.parameter(linear.name + ".lora_b.weight")}, rows, rank, linear.out);
  const Slot of_adapter = w_.gradient_gemm("MmBackward0 input lora_a " + linear.op(), w_.rows_by("d_lora_input." + linear.name, rows, linear.in),
                                           {t.d_reduced, w_.parameter(linear.name + ".lora_a.weight")}, rows, linear.in, rank);
  return w_.add(compiled() ? "triton_poi_fused_add lora" : "aten::add lora input gradients", w_.rows_by("d_input_sum." + linear.name, rows, linear.in),
                of_layer, of_adapter);
}

void Adapter::weight_gradients(const Linear& linear, Slot x) {
  const std::int64_t rows = w_.rows(linear), rank = w_.spec.model.lora_rank;
  const Tensors& t = tensors_.at(linear.name);
  w_.gradient_gemm("MmBackward0 weight lora_b " + linear.op(), w_.parameter_gradient(linear.name + ".lora_b.weight", linear.out * rank),
                   {t.d_scaled, t.reduced}, linear.out, rank, rows);
  w_.gradient_gemm("MmBackward0 weight lora_a " + linear.op(), w_.parameter_gradient(linear.name + ".lora_a.weight", rank * linear.in), {t.d_reduced, x}, rank,
                   linear.in, rows);
}

}  // namespace stepcast::program
