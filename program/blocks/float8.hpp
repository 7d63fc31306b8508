// Linear layers in 8-bit floats: the tensors that are cast, with their scales, and the three products. Four recipes (spec.hpp, Matmul), docs/kernels.md, "fp8".
// Tensorwise and rowwise follow torchao's Float8Linear: input and weight are kept in 16 bits and cast again for the backward, rowwise along the other dimension; delayed and
// blockwise follow Transformer Engine's Linear: one pass writes both layouts (Hopper's fp8 units take operands of one layout only), and what the backward multiplies is kept
// in 8 bits. Test: tests/unit/float8_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "program/blocks/layer.hpp"
#include "program/spec.hpp"

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
  /// What is cast. `weight`: blockwise, its blocks are square.
  struct Matrix {
    Slot slot;
    std::int64_t rows, columns;
    bool weight = false;
    [[nodiscard]] std::int64_t elements() const { return rows * columns; }
  };
  Cast cast(const std::string& name, const Matrix& of, Layouts layouts, bool fused_maximum);
  Cast cast_rowwise(const std::string& name, const Matrix& of, Layouts layouts);
  Slot cast_along(const std::string& name, const std::string& result, const Matrix& of, std::int64_t scales, bool one_pass);
  [[nodiscard]] std::int64_t scale_bytes(const Matrix& of) const;
  Slot weight(const Linear& linear);
  Slot transposed_weight(const Linear& linear);
  const Cast& gradient_of(const Linear& linear, Slot gradient);
  [[nodiscard]] std::int64_t summed_rows(const Linear& linear) const;
  Slot padded(const Linear& linear, const std::string& name, Slot cast, std::int64_t columns);
  [[nodiscard]] static hw::KernelShape product(std::int64_t m, std::int64_t n, std::int64_t k, bool backward);
  /// A compiled graph casts a tensor once, for all layers that read it; eager layers cast it each for itself.
  [[nodiscard]] std::string input_key(const Linear& linear, Slot x) const;
  [[nodiscard]] Matmul recipe() const;
  /// One pass writes both layouts, which are kept for the backward.
  [[nodiscard]] bool casts_once() const { return recipe() == Matmul::fp8_delayed || recipe() == Matmul::fp8_blockwise; }
  [[nodiscard]] bool compiled() const;

  Writer& w_;
  std::map<std::string, Cast> inputs_, saved_inputs_;  // by input_key
  std::map<Slot, Cast> gradients_;
  std::map<std::string, Slot> weights_;  // where casts are made once: transposed, kept from the forward
};

}  // namespace stepcast::program
