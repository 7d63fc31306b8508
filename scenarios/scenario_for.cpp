// A scenario from a model and a cluster's name alone: the document that a user would have written, read like any other. See hf_config.hpp.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"
#include "hw_models/text_file.hpp"
#include "scenarios/hf_config.hpp"
#include "scenarios/layers.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/presets.hpp"

namespace stepcast::scenarios {
namespace {

constexpr std::int64_t kDefaultSequence = 4096;

struct NodeCount {
  std::string node;
  std::int64_t nodes = 1;
};

/// "dgx-a100-4" is 4 nodes of dgx-a100; "roce-1600", a profile's own name, is one node.
NodeCount parse_cluster(const std::string& name) {
  const std::vector<std::string> known = hw::node_names();
  const auto is_known = [&](const std::string& node) { return std::find(known.begin(), known.end(), node) != known.end(); };
  if (is_known(name)) return {name, 1};
  NodeCount cluster;
  const std::size_t dash = name.find_last_of('-');
  cluster.node = name.substr(0, dash);
  const std::string digits = dash == std::string::npos ? "" : name.substr(dash + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), cluster.nodes);
  const bool number = error == std::errc() && end == digits.data() + digits.size() && cluster.nodes >= 1 && cluster.nodes <= kMaxNodes;
  if (number && is_known(cluster.node)) return cluster;
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  throw InputError("--cluster", "", "\"" + printable(name, 60) + "\" is not NAME-NODES with a known node", "for example dgx-a100-4; nodes: " + list);
}

}  // namespace

std::pair<std::string, std::int64_t> cluster_of(const std::string& name) {
  const NodeCount cluster = parse_cluster(name);
  return {cluster.node, cluster.nodes};
}

ImportedModel find_model(const std::string& model) {
  const std::vector<std::string> presets = preset_names();
  if (std::find(presets.begin(), presets.end(), model) != presets.end()) return {model, preset(model).model, {}};
  std::error_code error;
  if (model.find('/') == std::string::npos && !model.ends_with(".json") && !std::filesystem::exists(model, error)) {
    const std::string near = nearest(model, presets);
    throw InputError("--model", "", "\"" + printable(model, 60) + "\" is neither a file nor a built-in model",
                     near.empty() ? "" : "did you mean " + near + "?");
  }
  return import_hf_config(read_text_file(model, kMaxScenarioBytes), model);
}

ImportedDocument document_for(const std::string& model, const std::string& cluster) {
  ImportedModel imported = find_model(model);
  const NodeCount nodes = parse_cluster(cluster);
  const std::int64_t longest = imported.shape.max_positions > 0 ? imported.shape.max_positions : kDefaultSequence;
  nlohmann::ordered_json document = {{"name", printable(imported.name, 80) + " on " + cluster},
                                     {"cluster", {{"node", nodes.node}, {"nodes", nodes.nodes}}},
                                     {"batch", {{"micro_batch", 1}, {"seq_len", std::min(longest, kDefaultSequence)}}}};
  Scenario shape_only;
  shape_only.model = imported.shape;
  shape_only.model_name = printable(imported.name, 80);
  document["model"] = to_json(shape_only)["model"];
  return {document.dump(), std::move(imported.warnings)};
}

ImportedScenario scenario_for(const std::string& model, const std::string& cluster, Sets sets) {
  ImportedDocument document = document_for(model, cluster);
  return {read_scenario_text(document.text, model, sets), std::move(document.warnings)};
}

}  // namespace stepcast::scenarios
