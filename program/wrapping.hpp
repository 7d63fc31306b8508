// Which modules of a model are FSDP units: blocks, ends, or modules inside blocks, by name or by PyTorch's size-based walk (torch/distributed/fsdp/wrap.py).
// docs/fsdp1.md, "Units". Test: tests/unit/wrapping_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "program/spec.hpp"

namespace stepcast::program {

/// A unit inside a block, with the modules whose parameters it holds: "attention" with q, k, v and out.
struct InnerUnit {
  std::string name;
  std::vector<std::string> modules;
  std::string outer = {};  // the unit whose module this one's is a part of: its hooks stand around this one's. Empty: none
};

/// What no unit holds is the root's.
struct Wrapping {
  bool blocks = true;            // blocks, or several of them, are units
  bool ends = false;             // so are the embedding with the positions, and the final norm with the head
  std::vector<InnerUnit> inner;  // of every block, in the order in which their forwards end; then `blocks` is false
};
Wrapping wrapping_of(const StepSpec& spec);

/// Whether a unit inside the blocks holds their norms, and so nothing of them is left to the root.
bool holds_norms(const Wrapping& wrapping);

/// The module of a block's tensor: "q" of "q.weight" and "q.lora_a.weight", "e3.gate" of an expert's.
std::string module_of(std::string_view tensor);

/// The inner unit that holds a tensor of a block; nullptr: none does.
const InnerUnit* inner_unit_of(const Wrapping& wrapping, std::string_view tensor);

}  // namespace stepcast::program
