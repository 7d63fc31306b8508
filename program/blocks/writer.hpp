// Writes the kernel lists of a layer: sizes of the step, parameters and their gradients, and the operations that all blocks are made of.
// Bytes of a memory-bound kernel are those of the tensors that it reads and writes, unless a kernel touches only a part of one. docs/kernels.md.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/blocks/adapter.hpp"
#include "program/blocks/float8.hpp"
#include "program/blocks/layer.hpp"
#include "program/spec.hpp"
#include "program/wrapping.hpp"

namespace stepcast::program {

/// T tokens (b sequences of s), h hidden, e bytes per element of the compute type.
struct StepSizes {
  explicit StepSizes(const StepSpec& spec);
  std::int64_t tokens, sequences, seq_len, hidden, heads, kv_heads, head_dim, query_width, kv_width, ffn, vocab, element;
  hw::Dtype dtype;
  hw::Dtype statistic;  // of sums and statistics: fp32, of fp64 fp64
};

/// A linear layer of the model: y = x W (+ b), with the names of its parameters "<name>.weight" and "<name>.bias".
struct Linear {
  std::string name;
  std::int64_t in = 0, out = 0;
  bool bias = false;
  std::int64_t rows = 0;   // of x; 0: all tokens
  std::string label = {};  // in the names of kernels; empty: the name
  bool fp8 = true;         // where the step multiplies in fp8, this layer does; not the head, nor a router
  [[nodiscard]] const std::string& op() const { return label.empty() ? name : label; }
};

/// A parameter of a layer by its name, "q.weight".
struct NamedSlot {
  std::string name;
  Slot slot = kNoSlot;
};

/// Bytes that a kernel touches where they are not those of its tensors.
struct Traffic {
  std::int64_t read = 0, write = 0;
};

class Writer {
 public:
  using Slots = std::initializer_list<Slot>;
  using Memory = hw::MemoryClass;

  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  /// `frozen_part`: the layer's parameters are not trained.
  Writer(const StepSpec& step, Layer& list, bool frozen_part = false)
      : spec(step),
        size(step),
        layer(list),
        params(list.tensor("params", 0, Owner::all_gather, Lives::outside)),
        wrapping_(wrapping_of(step)),
        frozen_part_(frozen_part) {}

  // --- tensors
  Slot activation(std::string name, std::int64_t bytes) { return layer.tensor(std::move(name), bytes); }
  /// T x width elements of the compute type.
  Slot tokens_by(std::string name, std::int64_t width) { return rows_by(std::move(name), size.tokens, width); }
  Slot rows_by(std::string name, std::int64_t rows, std::int64_t width) { return activation(std::move(name), rows * width * size.element); }
  /// The layer's own parameters have no gradients: it is frozen, or adapters alone are trained.
  [[nodiscard]] bool frozen() const { return frozen_part_ || spec.model.lora_rank > 0; }
  /// The gradient of a parameter, in the compute type; kept for the gradient concat. The same tensor for the same name.
  Slot parameter_gradient(const std::string& parameter, std::int64_t elements);
  [[nodiscard]] std::vector<Slot> parameter_gradients() const;
  /// What kernels read a parameter from. Native kernels read each from its own place; for the others one tensor stands for all of a layer's, or of a unit's inside a block.
  Slot parameter(const std::string& name);
  [[nodiscard]] const std::vector<NamedSlot>& parameters() const { return parameters_; }
  /// Of units inside a block, by the name of the unit.
  [[nodiscard]] const std::vector<NamedSlot>& inner_units() const { return inner_units_; }

  // --- what native kernels compute on: a whole tensor of the compute type, or of the type of sums and statistics
  [[nodiscard]] Layer::SlotPart part(Slot slot, std::int64_t begin = 0) const;
  [[nodiscard]] Layer::SlotPart part_of(Slot slot, std::int64_t count) const { return {slot, size.dtype, 0, count}; }
  [[nodiscard]] Layer::SlotPart statistics(Slot slot) const { return {slot, size.statistic, 0, layer.bytes(slot) / hw::bytes_per_element(size.statistic)}; }

  // --- kernels; each returns what it writes
  Slot elementwise(std::string_view op, Slot result, Slots reads, Memory memory = Memory::elementwise);
  Slot kernel(std::string_view op, Slot result, Slots reads, Traffic traffic, Memory memory = Memory::elementwise);
  Slot kernel(std::string_view op, const hw::KernelShape& shape, Slot result, Slots reads);
  /// A kernel with several results, or of several launches.
  void kernel(std::string_view op, const std::vector<Slot>& results, const std::vector<Slot>& reads, Memory memory = Memory::elementwise,
              std::uint32_t further_launches = 0);
  void kernel(std::string_view op, const std::vector<Slot>& results, const std::vector<Slot>& reads, Traffic traffic, Memory memory,
              std::uint32_t further_launches) {
    layer.kernel(op, memory_bound(traffic, memory), reads, results, further_launches);
  }
  Slot gemm(std::string_view op, Slot result, Slots reads, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
    return kernel(op, product(matmul_type(), m, n, k, batch), result, reads);
  }
  /// The same of the backward: one operand is a gradient.
  Slot gradient_gemm(std::string_view op, Slot result, Slots reads, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
    hw::KernelShape shape = product(matmul_type(), m, n, k, batch);
    shape.backward = true;
    return kernel(op, shape, result, reads);
  }
  [[nodiscard]] static hw::KernelShape product(hw::Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1);
  Slot add(std::string_view what, Slot result, Slot a, Slot b) { return elementwise(what, result, {a, b}); }

  /// y = x W + b, the bias in the GEMM's epilogue.
  Slot linear(const Linear& linear, Slot x);
  /// Input gradient, weight gradient and, with a bias, its column sum; of a frozen layer the first, and the gradients of its adapter.
  Slot linear_backward(const Linear& linear, Slot gradient, Slot x);
  Slot input_gradient(const Linear& linear, Slot gradient);
  /// Adds it to `sum`.
  void add_input_gradient(const Linear& linear, Slot gradient, Slot sum);
  void weight_gradient(const Linear& linear, Slot gradient, Slot x);

  [[nodiscard]] std::int64_t rows(const Linear& linear) const { return linear.rows > 0 ? linear.rows : size.tokens; }

  const StepSpec& spec;
  StepSizes size;
  Layer& layer;
  Slot params;

 private:
  [[nodiscard]] bool in_fp8(const Linear& linear) const { return linear.fp8 && program::in_fp8(spec.precision); }
  [[nodiscard]] hw::Dtype matmul_type() const { return spec.precision.matmul == Matmul::tf32 ? hw::Dtype::tf32 : size.dtype; }
  [[nodiscard]] hw::KernelShape memory_bound(Traffic traffic, Memory memory) const;
  [[nodiscard]] bool keeps_next_linear();
  Float8 float8_{*this};
  void input_gradient(const Linear& linear, Slot gradient, Slot result, bool accumulate);
  Adapter adapter_{*this};
  std::vector<std::pair<std::string, Slot>> gradients_;
  Slot named(std::vector<NamedSlot>& slots, const std::string& prefix, const std::string& name);
  std::vector<NamedSlot> parameters_, inner_units_;
  Wrapping wrapping_;
  bool frozen_part_;
  int linears_ = 0;
};

}  // namespace stepcast::program
