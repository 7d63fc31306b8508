// What all stages of DeepSpeed's ZeRO know of a model: its parameters one by one in registration order with their gradients, and the units that marks and kernels name.
// docs/zero.md. Test: tests/unit/zero_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/builder.hpp"
#include "program/model.hpp"
#include "program/units.hpp"
#include "program/work.hpp"

namespace stepcast::program {

/// One per block and the root. `params`: the buffer that the model's kernels read all parameters from.
std::vector<Unit> make_zero_units(const StepSpec& spec, BufferId params);

/// A partition as the optimizer sees it: one flat tensor of `elements` in the master type, with its gradient and state.
Unit make_partition(const StepSpec& spec, Builder& builder, std::int64_t elements);

struct ZeroParameter {
  std::string name;    // "b3.q.weight", "embedding.weight"
  std::string module;  // "q", "embedding"; of a block's or the root's modules
  std::size_t unit = 0;
  std::int64_t elements = 0;
  bool matmul = false;
  BufferId gradient = 0;  // as produced by the model's kernels; of a frozen parameter none
  bool frozen = false;
};

/// In registration order: embedding, blocks, final norm and head.
std::vector<ZeroParameter> zero_parameters(const StepSpec& spec, const Builder& builder, const std::vector<Unit>& units, const Work& work);

/// Elements of a tensor's part on each rank.
inline std::int64_t partition_elements(std::int64_t elements, std::int64_t ranks) { return (elements + ranks - 1) / ranks; }

}  // namespace stepcast::program
