// Low-rank adapters beside frozen linear layers: y += s (x A^T) B^T, as PEFT's and torchtune's LoRALinear run it without dropout. docs/kernels.md, "Adapters".
// Test: tests/unit/adapter_test.cpp.
#pragma once

#include <map>
#include <string>

#include "program/blocks/layer.hpp"

namespace stepcast::program {

class Writer;
struct Linear;

class Adapter {
 public:
  explicit Adapter(Writer& writer) : w_(writer) {}
  /// Returns the sum of the layer's output and the adapter's.
  Slot forward(const Linear& linear, Slot x, Slot output);
  /// Returns the sum of both input gradients.
  Slot input_gradient(const Linear& linear, Slot gradient, Slot of_layer);
  /// Of A and B; after input_gradient.
  void weight_gradients(const Linear& linear, Slot x);

 private:
  struct Tensors {
    Slot reduced = kNoSlot, d_scaled = kNoSlot, d_reduced = kNoSlot;  // x A^T; s d_y; s d_y B
  };
  [[nodiscard]] bool compiled() const;

  Writer& w_;
  std::map<std::string, Tensors> tensors_;  // by layer
};

}  // namespace stepcast::program
