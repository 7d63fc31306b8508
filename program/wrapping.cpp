// The wrap policies over the modules of a block.
#include "program/wrapping.hpp"

#include <algorithm>
#include <numeric>

#include "program/model.hpp"

namespace stepcast::program {
namespace {

struct Leaf {
  std::string name;
  std::int64_t elements = 0;
};

/// A module of the tree that wrap policies walk. `list`: a ModuleList or ModuleDict, which is never wrapped itself.
struct Module {
  std::string name;
  std::vector<Leaf> leaves;
  std::vector<Module> children;
  bool list = false;
};

std::int64_t sum(const std::vector<Leaf>& leaves) {
  return std::accumulate(leaves.begin(), leaves.end(), std::int64_t{0}, [](std::int64_t total, const Leaf& leaf) { return total + leaf.elements; });
}

void append(std::vector<Leaf>& to, const std::vector<Leaf>& from) { to.insert(to.end(), from.begin(), from.end()); }

std::vector<Leaf> all_leaves(const Module& module) {
  std::vector<Leaf> result = module.leaves;
  for (const Module& child : module.children) append(result, all_leaves(child));
  return result;
}

bool is_expert(std::string_view name) { return name.size() > 1 && name[0] == 'e' && name[1] >= '0' && name[1] <= '9'; }
bool is_norm(std::string_view name) { return name.starts_with("norm"); }
bool is_attention(std::string_view name) { return name == "q" || name == "k" || name == "v" || name == "qkv" || name == "out"; }

Module leaf_module(const Leaf& leaf) { return {leaf.name, {leaf}, {}}; }

/// Modules of a block with what they hold, in the order of the forward.
std::vector<Leaf> leaves_of(const ModelShape& model) {
  std::vector<Leaf> leaves;
  for (const ParameterTensor& tensor : block_tensors(model)) {
    const std::string name = module_of(tensor.name);
    if (leaves.empty() || leaves.back().name != name) leaves.push_back({name, 0});
    leaves.back().elements += tensor.elements;
  }
  return leaves;
}

Module tree_of(const ModelShape& model) {
  Module block{"block", {}, {}}, attention{"attention", {}, {}}, feed_forward{"feed_forward", {}, {}}, experts{"experts", {}, {}, true};
  for (const Leaf& leaf : leaves_of(model)) {
    if (is_norm(leaf.name)) {
      block.leaves.push_back(leaf);
    } else if (is_attention(leaf.name)) {
      attention.children.push_back(leaf_module(leaf));
    } else if (is_expert(leaf.name)) {
      const std::string expert = leaf.name.substr(0, leaf.name.find('.'));
      if (experts.children.empty() || experts.children.back().name != expert) experts.children.push_back({expert, {}, {}});
      experts.children.back().children.push_back(leaf_module(leaf));
    } else {
      feed_forward.children.push_back(leaf_module(leaf));
    }
  }
  if (!experts.children.empty()) feed_forward.children.push_back(std::move(experts));
  block.children = {std::move(attention), std::move(feed_forward)};
  return block;
}

InnerUnit unit_of(const std::string& name, const std::vector<Leaf>& leaves) {
  InnerUnit unit{name, {}, {}};
  for (const Leaf& leaf : leaves) unit.modules.push_back(leaf.name);
  return unit;
}

/// _recursive_wrap with size_based_auto_wrap_policy: only into modules that are large enough; wrapped is what still holds enough once its children are. Returns what is not.
std::vector<Leaf> walk(const Module& module, std::int64_t least, std::vector<InnerUnit>& units) {
  if (sum(all_leaves(module)) < least) return all_leaves(module);
  const std::size_t first = units.size();
  std::vector<Leaf> rest = module.leaves;
  for (const Module& child : module.children) append(rest, walk(child, least, units));
  if (module.list || sum(rest) < least) return rest;
  for (std::size_t i = first; i < units.size(); ++i) {
    if (units[i].outer.empty()) units[i].outer = module.name;
  }
  units.push_back(unit_of(module.name, rest));
  return {};
}

/// As if blocks, embedding and head hung directly below the root, as in torchtitan's Transformer.
Wrapping size_based(const StepSpec& spec) {
  const std::int64_t least = spec.policy.min_unit_parameters;
  Wrapping wrapping{.blocks = false, .ends = spec.model.vocab * spec.model.hidden >= least && !spec.model.tied_embeddings, .inner = {}};
  walk(tree_of(spec.model), least, wrapping.inner);
  wrapping.blocks = wrapping.inner.size() == 1 && wrapping.inner.front().name == "block";
  if (wrapping.blocks) wrapping.inner.clear();
  return wrapping;
}

std::vector<InnerUnit> attention_and_feed_forward(const ModelShape& model) {
  std::vector<InnerUnit> units;
  for (const Module& child : tree_of(model).children) units.push_back(unit_of(child.name, all_leaves(child)));
  return units;
}

std::vector<InnerUnit> linears(const ModelShape& model) {
  std::vector<InnerUnit> units;
  for (const Leaf& leaf : leaves_of(model)) {
    if (!is_norm(leaf.name)) units.push_back(unit_of(leaf.name, {leaf}));
  }
  return units;
}

}  // namespace

Wrapping wrapping_of(const StepSpec& spec) {
  switch (spec.policy.wrap) {
    case Wrap::blocks: return {};
    case Wrap::embedding_and_head: return {.blocks = true, .ends = true, .inner = {}};
    case Wrap::model: return {.blocks = false, .ends = false, .inner = {}};
    case Wrap::size_based: return size_based(spec);
    case Wrap::attention_and_ffn: return {.blocks = false, .ends = false, .inner = attention_and_feed_forward(spec.model)};
    case Wrap::linears: break;
  }
  return {.blocks = false, .ends = false, .inner = linears(spec.model)};
}

bool holds_norms(const Wrapping& wrapping) { return inner_unit_of(wrapping, "norm1.weight") != nullptr; }

std::string module_of(std::string_view tensor) {
  std::size_t end = tensor.find('.');
  if (is_expert(tensor) && end != std::string_view::npos) end = tensor.find('.', end + 1);
  return std::string(tensor.substr(0, end));
}

const InnerUnit* inner_unit_of(const Wrapping& wrapping, std::string_view tensor) {
  const std::string module = module_of(tensor);
  for (const InnerUnit& unit : wrapping.inner) {
    if (std::find(unit.modules.begin(), unit.modules.end(), module) != unit.modules.end()) return &unit;
  }
  return nullptr;
}

}  // namespace stepcast::program
