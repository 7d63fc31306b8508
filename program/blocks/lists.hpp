// The kernel lists of the parts of a model, written into layers: a block (eager or compiled), the head with the loss, the embedding.
// Test: tests/unit/blocks_test.cpp.
#pragma once

#include <vector>

#include "program/blocks/writer.hpp"
#include "program/spec.hpp"

namespace stepcast::program {

/// The tensors by which a layer is joined to others.
struct Ports {
  Slot params = kNoSlot;
  Slot input = kNoSlot, output = kNoSlot;      // head: no output; embedding: `input` are the token ids
  Slot d_output = kNoSlot, d_input = kNoSlot;  // head: no d_output; embedding: no d_input
  Slot kept_logits = kNoSlot;                  // head: logits that whoever trains gives back
  Slot tied_gradient = kNoSlot;                // embedding with tied weights: the head's weight gradient, to which its own is added
  Slot labels = kNoSlot, metrics = kNoSlot;    // native head: the input that holds the labels, and where the loss is noted
  std::vector<Slot> parameter_gradients;
  std::vector<NamedSlot> parameters;   // native kernels: each with a place of its own
  std::vector<NamedSlot> inner_units;  // block: what units inside of it hold
};

/// What the backward does in a block: everything, input gradients alone (frozen parameters), or nothing (no gradient passes through).
enum class Training : std::uint8_t { all, inputs_only, none };
inline Training training_of(const ModelShape& model, std::int64_t block) {
  return block < blocks_without_backward(model) ? Training::none : block < model.frozen_blocks ? Training::inputs_only : Training::all;
}

/// Each finishes the layer. The head's weight gradient is called "head.weight", tied or not. `window`: of the block's attention, as window_of gives it.
Ports write_block(const StepSpec& spec, Layer& layer, std::int64_t window = 0, Training training = Training::all);
Ports write_head(const StepSpec& spec, Layer& layer);
Ports write_embedding(const StepSpec& spec, Layer& layer);
/// Metrics of a micro-batch, a list without a backward. Returns the logits, which live elsewhere.
Slot write_train_metrics(const StepSpec& spec, Layer& layer);

/// The same as the few kernels that real backends run.
Ports write_native_block(const StepSpec& spec, Layer& layer, std::int64_t window);
Ports write_native_head(const StepSpec& spec, Layer& layer);
Ports write_native_embedding(const StepSpec& spec, Layer& layer);

}  // namespace stepcast::program
