// Dropout: a kernel that writes the result and a mask of one byte per element, which the backward reads (aten::native_dropout). Megatron-LM joins the one behind attention and
// feed-forward with the residual addition in one kernel (bias_dropout_add). docs/kernels.md; test: tests/unit/dropout_test.cpp.
#pragma once

#include <string>

#include "program/blocks/writer.hpp"

namespace stepcast::program {

class Dropout {
 public:
  Dropout(Writer& writer, std::string name, bool on) : w_(writer), name_(std::move(name)), on_(on) {}
  [[nodiscard]] bool on() const { return on_; }

  Slot forward(Slot x, Slot result) {
    w_.kernel("aten::native_dropout", {result, mask(x)}, {x});
    return result;
  }
  /// residual + dropout(branch); a plain addition where there is no dropout.
  Slot add_residual(Slot result, Slot residual, Slot branch) {
    if (!on_) return w_.add("aten::add residual", result, residual, branch);
    if (w_.spec.kernels.set != KernelSet::megatron)
      return w_.add("aten::add residual", result, residual, forward(branch, w_.activation(name_ + ".out", w_.layer.bytes(branch))));
    w_.kernel("bias_dropout_add", {result, mask(branch)}, {residual, branch});
    return result;
  }
  /// The gradient itself where there is no dropout.
  Slot backward(Slot gradient) {
    if (!on_) return gradient;
    return w_.elementwise("NativeDropoutBackward0", w_.activation(name_ + ".d_in", w_.layer.bytes(gradient)), {gradient, mask_});
  }

 private:
  Slot mask(Slot x) { return mask_ = w_.activation(name_ + ".mask", w_.layer.bytes(x) / w_.size.element); }
  Writer& w_;
  std::string name_;
  bool on_;
  Slot mask_ = kNoSlot;
};

}  // namespace stepcast::program
