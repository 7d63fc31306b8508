// Units, partition and parameters of ZeRO.
#include "program/zero_parameters.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

namespace stepcast::program {
namespace {

using Gradients = std::unordered_map<std::string, BufferId>;

/// Gradients by the name behind ".grad.".
Gradients by_name(const Program& program, std::span<const BufferId> gradients) {
  Gradients result;
  for (const BufferId gradient : gradients) {
    const std::string& label = program.buffers[gradient].label;
    result[label.substr(label.find(".grad.") + 6)] = gradient;
  }
  return result;
}

/// The one gradient of tied embeddings is the head's.
BufferId gradient_of(const Gradients& gradients, const std::string& tensor) {
  const auto own = gradients.find(tensor);
  const auto found = own != gradients.end() ? own : gradients.find("head.weight");
  if (found == gradients.end()) throw std::logic_error("no gradient of '" + tensor + "'");
  return found->second;
}

}  // namespace

std::vector<Unit> make_zero_units(const StepSpec& spec, BufferId params) {
  std::vector<Unit> units = blocks_and_root(spec.model);
  for (Unit& unit : units) unit.params = params;
  return units;
}

Unit make_partition(const StepSpec& spec, Builder& builder, std::int64_t elements) {
  const std::int64_t bytes = hw::bytes_per_element(spec.precision.master) * elements;
  Unit unit;
  unit.name = "partition";
  unit.tensors = 1;
  unit.parameters = unit.flat.elements = unit.flat.shard = elements;
  unit.trained_tensors = 1;
  unit.trained_parameters = unit.trained_shard = elements;
  unit.flat.ranks = spec.world.ranks();
  unit.master = builder.buffer("partition.master", bytes, Owner::parameters);
  unit.exp_avg = builder.buffer("partition.exp_avg", bytes, Owner::optimizer);
  unit.exp_avg_sq = builder.buffer("partition.exp_avg_sq", bytes, Owner::optimizer);
  unit.sharded_grad = builder.buffer("partition.gradient", bytes, Owner::gradients);
  return unit;
}

std::vector<ZeroParameter> zero_parameters(const StepSpec& spec, const Builder& builder, const std::vector<Unit>& units, const Work& work) {
  std::vector<ZeroParameter> result;
  const auto add = [&](std::size_t unit, const ParameterTensor& tensor, const Gradients& gradients, const std::string& prefix) {
    const BufferId gradient = tensor.frozen ? BufferId{} : gradient_of(gradients, tensor.name);
    result.push_back({prefix + tensor.name, tensor.name.substr(0, tensor.name.find('.')), unit, tensor.elements, tensor.matmul, gradient, tensor.frozen});
  };
  const Gradients outer = by_name(builder.program(), work.root_gradients());
  const std::vector<ParameterTensor> root = root_tensors(spec.model);
  const auto in_front = [](const ParameterTensor& t) { return t.name.starts_with("embedding.") || t.name.starts_with("positions."); };
  for (const ParameterTensor& tensor : root) {
    if (in_front(tensor)) add(units.size() - 1, tensor, outer, "");
  }
  for (std::size_t u = 0; u + 1 < units.size(); ++u) {
    const Gradients gradients = by_name(builder.program(), work.block_gradients(units[u].first_block));
    for (const ParameterTensor& tensor : block_tensors(spec.model, units[u].first_block)) add(u, tensor, gradients, units[u].name + ".");
  }
  for (const ParameterTensor& tensor : root) {
    if (!in_front(tensor)) add(units.size() - 1, tensor, outer, "");
  }
  return result;
}

}  // namespace stepcast::program
