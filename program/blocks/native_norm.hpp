// RMSNorm and LayerNorm as two native kernels. docs/native_kernels.md; test: tests/unit/native_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "program/blocks/writer.hpp"

namespace stepcast::program {

class NativeNorm {
 public:
  NativeNorm(Writer& writer, std::string name)
      : w_(writer), name_(std::move(name)), centred_(writer.spec.model.norm == NormKind::layer_norm), has_bias_(centred_ && writer.spec.model.norm_bias) {}

  /// Keeps per row the reciprocal deviation, and with LayerNorm the mean before it.
  Slot forward(Slot x) {
    x_ = x;
    const std::int64_t per_row = (centred_ ? 2 : 1) * hw::bytes_per_element(w_.size.statistic);
    statistics_ = w_.activation(name_ + ".statistics", w_.size.tokens * per_row);
    const Slot result = w_.tokens_by(name_ + ".out", w_.size.hidden), bias = has_bias_ ? w_.parameter(name_ + ".bias") : kNoSlot;
    std::vector<Slot> reads{x, weight()};
    if (has_bias_) reads.push_back(bias);
    w_.kernel("native::norm", {result, statistics_}, reads, hw::MemoryClass::normalization);
    w_.layer.computes(Function::norm, {w_.part(x), vector(weight()), vector(bias), w_.part(result), w_.statistics(statistics_)}, attributes());
    return result;
  }

  /// Gradient of the input plus `residual` (kNoSlot: none), into `result`; and those of the parameters.
  void backward(Slot gradient, Slot residual, Slot result) {
    std::vector<Slot> writes{result, w_.parameter_gradient(name_ + ".weight", w_.size.hidden)}, reads{gradient, x_, statistics_, weight()};
    if (has_bias_) writes.push_back(w_.parameter_gradient(name_ + ".bias", w_.size.hidden));
    if (residual != kNoSlot) reads.push_back(residual);
    w_.kernel("native::norm_backward", writes, reads, hw::MemoryClass::normalization);
    w_.layer.computes(Function::norm_backward,
                      {w_.part(gradient), w_.part(x_), w_.statistics(statistics_), vector(weight()), w_.part(residual), w_.part(result), w_.part(writes[1]),
                       w_.part(has_bias_ ? writes[2] : kNoSlot)},
                      attributes());
  }

 private:
  Slot weight() { return w_.parameter(name_ + ".weight"); }
  [[nodiscard]] Layer::SlotPart vector(Slot slot) const { return slot == kNoSlot ? Layer::SlotPart{} : w_.part_of(slot, w_.size.hidden); }
  [[nodiscard]] Attributes attributes() const { return {.rows = w_.size.tokens, .columns = w_.size.hidden, .centred = centred_}; }

  Writer& w_;
  std::string name_;
  bool centred_, has_bias_;
  Slot x_ = kNoSlot, statistics_ = kNoSlot;
};

}  // namespace stepcast::program
