// Casts and products of fp8 linear layers.
#include "program/blocks/float8.hpp"

#include "program/blocks/writer.hpp"

namespace stepcast::program {

Matmul Float8::recipe() const { return w_.spec.precision.matmul; }
std::string Float8::input_key(const Linear& linear, Slot x) const { return compiled() ? std::to_string(x) : linear.name; }
bool Float8::compiled() const { return w_.spec.kernels.set == KernelSet::pytorch_compile; }

/// Blockwise: one for 128 elements of a row, of a weight one for 128 x 128; in fp32, beside the elements.
std::int64_t Float8::scale_bytes(const Matrix& of) const {
  constexpr std::int64_t kBlock = 128;
  const auto blocks = [](std::int64_t n) { return (n + kBlock - 1) / kBlock; };
  return recipe() == Matmul::fp8_blockwise ? 4 * (of.weight ? blocks(of.rows) : of.rows) * blocks(of.columns) : 0;
}

/// The scale of a tensor needs its largest element: a pass of its own, unless it comes from earlier steps or the kernel that wrote the tensor found it. Those of blocks
/// are found in the tile that is cast.
Float8::Cast Float8::cast(const std::string& name, const Matrix& of, Layouts layouts, bool fused_maximum) {
  if (recipe() == Matmul::fp8_rowwise) return cast_rowwise(name, of, layouts);
  const std::int64_t read = of.elements() * w_.size.element, written = of.elements() + scale_bytes(of);
  if (!casts_once() && !fused_maximum) w_.kernel("aten::amax " + name, w_.activation("amax8." + name, 4), {of.slot}, {read, 4}, hw::MemoryClass::normalization);
  Cast cast;
  std::vector<Slot> results;
  if (layouts != Layouts::transposed) results.push_back(cast.plain = w_.activation("f8." + name, written));
  if (layouts != Layouts::plain) results.push_back(cast.transposed = w_.activation("f8t." + name, written));
  const char* op = recipe() == Matmul::fp8_delayed     ? "cast_transpose "
                   : recipe() == Matmul::fp8_blockwise ? "quantize_blockwise "
                   : compiled()                        ? "triton_poi_fused_to_float8 "
                                                       : "to_float8 ";
  w_.kernel(op + name, results, {of.slot}, {read, written * static_cast<std::int64_t>(results.size())}, hw::MemoryClass::elementwise, 0);
  return cast;
}

/// Each layout has scales of its own: along the rows, and for the products that sum over the rows along the columns.
Float8::Cast Float8::cast_rowwise(const std::string& name, const Matrix& of, Layouts layouts) {
  Cast cast;
  if (layouts != Layouts::transposed) cast.plain = cast_along(name, "f8." + name, of, of.rows, compiled());
  if (layouts != Layouts::plain) cast.transposed = cast_along(name + " columns", "f8t." + name, of, of.columns, false);
  return cast;
}

/// A compiled graph finds a row's maximum and casts the row in one kernel. Maxima of columns are known only when all rows are read.
Slot Float8::cast_along(const std::string& name, const std::string& result, const Matrix& of, std::int64_t scales, bool one_pass) {
  const std::int64_t read = of.elements() * w_.size.element;
  const Slot cast = w_.activation(result, of.elements());
  const Slot maxima = w_.activation("amax8." + result, 4 * scales);
  if (one_pass) {
    w_.kernel("triton_red_fused_to_float8 " + name, {cast, maxima}, {of.slot}, {read, of.elements() + 4 * scales}, hw::MemoryClass::normalization, 0);
    return cast;
  }
  w_.kernel((compiled() ? "triton_red_fused_amax " : "aten::amax ") + name, maxima, {of.slot}, {read, 4 * scales}, hw::MemoryClass::normalization);
  return w_.kernel((compiled() ? "triton_poi_fused_to_float8 " : "to_float8 ") + name, cast, {of.slot, maxima}, {read + 4 * scales, of.elements()});
}

Slot Float8::weight(const Linear& linear) {
  if (w_.spec.precision.fp8_all_gather) return w_.parameter(linear.name + ".weight");
  const Matrix of{w_.parameter(linear.name + ".weight"), linear.out, linear.in, true};
  const Cast made = cast(linear.name + ".weight", of, casts_once() ? Layouts::both : Layouts::plain, false);
  weights_[linear.name] = made.transposed;
  return made.plain;
}

Slot Float8::transposed_weight(const Linear& linear) {
  if (casts_once()) return weights_.at(linear.name);
  const Matrix of{w_.parameter(linear.name + ".weight"), linear.out, linear.in, true};
  if (!w_.spec.precision.fp8_all_gather) return cast("d_" + linear.name + ".weight", of, Layouts::transposed, false).transposed;
  const Slot copy = w_.activation("f8t." + linear.name + ".weight", of.elements());
  return w_.kernel("aten::copy float8 weight " + linear.op(), copy, {of.slot}, {of.elements(), of.elements()}, hw::MemoryClass::copy);
}

Slot Float8::forward(const Linear& linear, Slot x, Slot result) {
  Cast& x8 = inputs_[input_key(linear, x)];
  if (x8.plain == kNoSlot) x8 = cast(linear.name + ".input", {x, w_.rows(linear), linear.in}, casts_once() ? Layouts::both : Layouts::plain, compiled());
  if (casts_once()) saved_inputs_[input_key(linear, x)] = x8;
  return w_.kernel("aten::_scaled_mm " + linear.op(), product(w_.rows(linear), linear.out, linear.in, false), result, {x8.plain, weight(linear)});
}

const Float8::Cast& Float8::gradient_of(const Linear& linear, Slot gradient) {
  Cast& made = gradients_[gradient];
  if (made.plain == kNoSlot) made = cast("d_" + linear.name, {gradient, w_.rows(linear), linear.out}, Layouts::both, compiled());
  return made;
}

Slot Float8::input_gradient(const Linear& linear, Slot gradient, Slot result) {
  const Slot g8 = gradient_of(linear, gradient).plain;
  return w_.kernel("_scaled_mm backward input " + linear.op(), product(w_.rows(linear), linear.in, linear.out, true), result, {g8, transposed_weight(linear)});
}

void Float8::weight_gradient(const Linear& linear, Slot gradient, Slot x, Slot result) {
  const Slot g8 = gradient_of(linear, gradient).transposed;
  Cast& x8 = saved_inputs_[input_key(linear, x)];
  if (x8.transposed == kNoSlot) x8 = cast("saved." + linear.name + ".input", {x, w_.rows(linear), linear.in}, Layouts::transposed, compiled());
  const Slot padded_gradient = padded(linear, "d_" + linear.name, g8, linear.out),
             padded_input = padded(linear, linear.name + ".input", x8.transposed, linear.in);
  w_.kernel("_scaled_mm backward weight " + linear.op(), product(linear.out, linear.in, summed_rows(linear), true), result, {padded_gradient, padded_input});
}

/// An expert has as many rows as tokens were routed to it. The product that sums over them wants a multiple of 16, which a real router's counts hardly ever are.
std::int64_t Float8::summed_rows(const Linear& linear) const {
  constexpr std::int64_t kMultiple = 16;
  return (w_.rows(linear) + kMultiple - 1) / kMultiple * kMultiple;
}

/// torchao's pad_inner_dim: a copy with zeros behind the last row.
Slot Float8::padded(const Linear& linear, const std::string& name, Slot cast, std::int64_t columns) {
  if (w_.spec.model.experts == 0 || linear.rows == 0) return cast;
  const std::int64_t rows = summed_rows(linear);
  const char* op = compiled() ? "triton_poi_fused_constant_pad_nd " : "aten::constant_pad_nd ";
  return w_.kernel(op + name, w_.activation("padded8." + name, rows * columns), {cast}, {w_.rows(linear) * columns, rows * columns}, hw::MemoryClass::copy);
}

hw::KernelShape Float8::product(std::int64_t m, std::int64_t n, std::int64_t k, bool backward) {
  hw::KernelShape shape = Writer::product(hw::Dtype::fp8, m, n, k);
  shape.backward = backward;
  return shape;
}

}  // namespace stepcast::program
