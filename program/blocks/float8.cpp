// Casts and products of fp8 linear layers.
#include "program/blocks/float8.hpp"

#include "program/blocks/writer.hpp"

namespace stepcast::program {

bool Float8::delayed() const { return w_.spec.precision.matmul == Matmul::fp8_delayed; }
std::string Float8::input_key(const Linear& linear, Slot x) const { return compiled() ? std::to_string(x) : linear.name; }
bool Float8::compiled() const { return w_.spec.kernels.set == KernelSet::pytorch_compile; }

/// The scale of a tensor needs its largest element: a pass of its own, unless it comes from earlier steps or the kernel that wrote the tensor found it.
Float8::Cast Float8::cast(const std::string& name, Slot of, std::int64_t elements, Layouts layouts, bool fused_maximum) {
  const std::int64_t read = elements * w_.size.element;
  if (!delayed() && !fused_maximum) w_.kernel("aten::amax " + name, w_.activation("amax8." + name, 4), {of}, {read, 4}, hw::MemoryClass::normalization);
  Cast cast;
  std::vector<Slot> results;
  if (layouts != Layouts::transposed) results.push_back(cast.plain = w_.activation("f8." + name, elements));
  if (layouts != Layouts::plain) results.push_back(cast.transposed = w_.activation("f8t." + name, elements));
  const std::string op = (delayed() ? "cast_transpose " : compiled() ? "triton_poi_fused_to_float8 " : "to_float8 ") + name;
  w_.kernel(op, results, {of}, {read, elements * static_cast<std::int64_t>(results.size())}, hw::MemoryClass::elementwise, 0);
  return cast;
}

Slot Float8::weight(const Linear& linear) {
  if (w_.spec.precision.fp8_all_gather) return w_.params;
  const Cast made = cast(linear.name + ".weight", w_.params, linear.in * linear.out, delayed() ? Layouts::both : Layouts::plain, false);
  weights_[linear.name] = made.transposed;
  return made.plain;
}

Slot Float8::transposed_weight(const Linear& linear) {
  if (delayed()) return weights_.at(linear.name);
  const std::int64_t elements = linear.in * linear.out;
  if (!w_.spec.precision.fp8_all_gather) return cast("d_" + linear.name + ".weight", w_.params, elements, Layouts::transposed, false).transposed;
  const Slot copy = w_.activation("f8t." + linear.name + ".weight", elements);
  return w_.kernel("aten::copy float8 weight " + linear.op(), copy, {w_.params}, {elements, elements}, hw::MemoryClass::copy);
}

Slot Float8::forward(const Linear& linear, Slot x, Slot result) {
  const std::int64_t elements = w_.rows(linear) * linear.in;
  Cast& x8 = inputs_[input_key(linear, x)];
  if (x8.plain == kNoSlot) x8 = cast(linear.name + ".input", x, elements, delayed() ? Layouts::both : Layouts::plain, compiled());
  if (delayed()) saved_inputs_[input_key(linear, x)] = x8;
  return multiply("aten::_scaled_mm " + linear.op(), result, x8.plain, weight(linear), w_.rows(linear), linear.out, linear.in);
}

const Float8::Cast& Float8::gradient_of(const Linear& linear, Slot gradient) {
  Cast& made = gradients_[gradient];
  if (made.plain == kNoSlot) made = cast("d_" + linear.name, gradient, w_.rows(linear) * linear.out, Layouts::both, compiled());
  return made;
}

Slot Float8::input_gradient(const Linear& linear, Slot gradient, Slot result) {
  const Slot g8 = gradient_of(linear, gradient).plain;
  return multiply("_scaled_mm backward input " + linear.op(), result, g8, transposed_weight(linear), w_.rows(linear), linear.in, linear.out);
}

void Float8::weight_gradient(const Linear& linear, Slot gradient, Slot x, Slot result) {
  const Slot g8 = gradient_of(linear, gradient).transposed;
  Cast& x8 = saved_inputs_[input_key(linear, x)];
  if (x8.transposed == kNoSlot) x8 = cast("saved." + linear.name + ".input", x, w_.rows(linear) * linear.in, Layouts::transposed, compiled());
  multiply("_scaled_mm backward weight " + linear.op(), result, g8, x8.transposed, linear.out, linear.in, w_.rows(linear));
}

Slot Float8::multiply(const std::string& op, Slot result, Slot a, Slot b, std::int64_t m, std::int64_t n, std::int64_t k) {
  return w_.gemm_of(hw::Dtype::fp8, op, result, {a, b}, m, n, k);
}

}  // namespace stepcast::program
