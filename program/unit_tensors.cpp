// Which tensors, parameters and parts of the model a unit holds. See units.hpp.
#include <algorithm>
#include <stdexcept>

#include "program/units.hpp"

namespace stepcast::program {
namespace {

constexpr std::string_view kGradientInfix = ".grad.";

}  // namespace

bool holds(const Unit& unit, std::string_view tensor) {
  if (unit.modules.empty() && unit.but_for.empty()) return true;
  const std::string module = module_of(tensor);
  const auto among = [&](const std::vector<std::string>& modules) { return std::find(modules.begin(), modules.end(), module) != modules.end(); };
  return unit.modules.empty() ? !among(unit.but_for) : among(unit.modules);
}

const Unit& unit_of_block(const std::vector<Unit>& units, std::int64_t block) {
  return *std::find_if(units.begin(), units.end(), [&](const Unit& unit) {
    return unit.first_block <= block && block < unit.first_block + unit.block_count && holds(unit, "norm1.weight");
  });
}

const Unit& inner_unit(const std::vector<Unit>& units, std::int64_t block, const std::string& name) {
  return *std::find_if(units.begin(), units.end(), [&](const Unit& unit) { return unit.inner == name && unit.first_block == block; });
}

std::vector<BufferId> saved_casts(const StepSpec& spec, const Program& program, const Unit& unit) {
  std::vector<BufferId> casts;
  if (spec.precision.matmul != Matmul::fp8_delayed && spec.precision.matmul != Matmul::fp8_blockwise) return casts;
  const std::string prefix = "b" + std::to_string(unit.first_block) + ".f8t.";
  for (BufferId i = 0; i < program.buffers.size(); ++i) {
    const std::string& label = program.buffers[i].label;
    if (label.starts_with(prefix) && label.ends_with(".weight") && holds(unit, label.substr(prefix.size()))) casts.push_back(i);
  }
  return casts;
}

std::vector<std::pair<std::string, ParameterTensor>> named_tensors(const ModelShape& model, const Unit& unit) {
  std::vector<std::pair<std::string, ParameterTensor>> result;
  for (std::int64_t b = unit.first_block; b < unit.first_block + unit.block_count; ++b) {
    for (const ParameterTensor& tensor : block_tensors(model, b)) {
      if (holds(unit, tensor.name)) result.emplace_back(std::string("b").append(std::to_string(b)).append(".").append(tensor.name), tensor);
    }
  }
  if (unit.root ? !unit.holds_ends : !unit.own_embedding && !unit.own_head) return result;
  for (const ParameterTensor& tensor : root_tensors(model)) {
    const bool of_embedding = tensor.name.starts_with("embedding.") || tensor.name.starts_with("positions.");
    if (unit.root || of_embedding == unit.own_embedding) result.emplace_back(tensor.name, tensor);
  }
  return result;
}

const ParameterEntry& entry_of(std::span<const Unit> units, const std::string& name) {
  for (const Unit& unit : units) {
    const auto found = std::find_if(unit.entries.begin(), unit.entries.end(), [&](const ParameterEntry& e) { return e.name == name; });
    if (found != unit.entries.end()) return *found;
  }
  if (name != "head.weight") throw std::logic_error("no unit has a parameter '" + name + "'");
  return entry_of(units, "embedding.weight");
}

std::string gradient_name(std::string_view label) {
  constexpr std::string_view kKept = ".accumulated";
  std::string_view name = label.substr(label.find(kGradientInfix) + kGradientInfix.size());
  if (name.ends_with(kKept)) name.remove_suffix(kKept.size());
  return std::string(name);
}

const ParameterEntry& entry_of_gradient(const Unit& unit, const std::string& label) {
  std::string name = gradient_name(label);
  const std::string owner = label.substr(0, label.find(kGradientInfix));
  if (owner != "root" && owner != "head" && owner != "embedding") name.insert(0, owner + ".");
  return entry_of(std::span(&unit, 1), name);
}

std::vector<ParameterEntry> all_parameters(const ModelShape& model, const std::vector<Unit>& units) {
  std::vector<ParameterEntry> result;
  std::int64_t first = 0;
  const auto add = [&](const std::string& name) {
    result.push_back(entry_of(units, name));
    result.back().first = first;
    first += result.back().elements;
  };
  const std::vector<ParameterTensor> outer = root_tensors(model);
  const auto in_front = [](const ParameterTensor& tensor) { return tensor.name.starts_with("embedding.") || tensor.name.starts_with("positions."); };
  for (const ParameterTensor& tensor : outer) {
    if (in_front(tensor)) add(tensor.name);
  }
  for (std::int64_t b = 0; b < model.layers; ++b) {
    for (const ParameterTensor& tensor : block_tensors(model, b)) add(std::string("b").append(std::to_string(b)).append(".").append(tensor.name));
  }
  for (const ParameterTensor& tensor : outer) {
    if (!in_front(tensor)) add(tensor.name);
  }
  if (first != parameters(model)) throw std::logic_error("the units do not hold all parameters of the model");
  return result;
}

const Unit& embedding_unit(const std::vector<Unit>& units) {
  const auto own = std::find_if(units.begin(), units.end(), [](const Unit& unit) { return unit.own_embedding; });
  return own != units.end() ? *own : units.back();
}

const Unit& head_unit(const std::vector<Unit>& units) {
  const auto own = std::find_if(units.begin(), units.end(), [](const Unit& unit) { return unit.own_head; });
  return own != units.end() ? *own : units.back();
}

}  // namespace stepcast::program
