// Linear layers in 8-bit floats: the tensors that are cast, with their scales, and the three products. Two recipes (spec.hpp, Matmul), docs/kernels.md, "fp8".
// Tensorwise follows torchao's Float8Linear: input and weight are kept in 16 bits and cast again for the backward; delayed follows Transformer Engine's Linear: one pass
// writes both layouts (Hopper's fp8 units take operands of one layout only), and what the backward multiplies is kept in 8 bits. Test: tests/unit/float8_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "program/blocks/layer.hpp"

namespace stepcast::program {

class Writer;
struct Linear;

class Float8 {
 public:
  explicit Float8(Writer& writer) : w_(writer) {}
  /// y = x W: the product alone; biases ride in its epilogue.
  Slot forward(const Linear& linear, Slot x, Slot result);
  Slot input_gradient(const Linear& linear, Slot gradient, Slot result);
  void weight_gradient(const Linear& linear, Slot gradient, Slot x, Slot result);

 private:
  /// A tensor as its products read it: row by row, and transposed.
  struct Cast {
    Slot plain = kNoSlot, transposed = kNoSlot;
  };
  enum class Layouts : std::uint8_t { plain, transposed, both };
  Cast cast(const std::string& name, Slot of, std::int64_t elements, Layouts layouts, bool fused_maximum);
  Slot weight(const Linear& linear);
  Slot transposed_weight(const Linear& linear);
  const Cast& gradient_of(const Linear& linear, Slot gradient);
  Slot multiply(const std::string& op, Slot result, Slot a, Slot b, std::int64_t m, std::int64_t n, std::int64_t k);
  /// A compiled graph casts a tensor once, for all layers that read it; eager layers cast it each for itself.
  [[nodiscard]] std::string input_key(const Linear& linear, Slot x) const;
  [[nodiscard]] bool delayed() const;
  [[nodiscard]] bool compiled() const;

  Writer& w_;
  std::map<std::string, Cast> inputs_, saved_inputs_;  // by input_key
  std::map<Slot, Cast> gradients_;
  std::map<std::string, Slot> weights_;  // delayed: transposed, kept from the forward
};

}  // namespace stepcast::program
