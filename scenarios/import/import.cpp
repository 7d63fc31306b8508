// See import.hpp: which format a file has, and what files, model and cluster make together.
#include "scenarios/import/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"
#include "hw_models/text_file.hpp"
#include "scenarios/import/draft.hpp"
#include "scenarios/import/text_formats.hpp"
#include "scenarios/presets.hpp"

namespace stepcast::scenarios {
namespace {

using Object = nlohmann::ordered_json;

struct Format {
  const char* name;
  const char* ending;              // the files' syntax
  std::vector<const char*> marks;  // keys of which one tells the format
  void (*read)(Settings&, Draft&);
};

/// A config.json of Hugging Face.
void import_model_file(Settings& s, Draft& draft) {
  const ImportedModel imported = import_hf_config(s.json().dump(), s.file());
  Scenario shape_only;
  shape_only.model = imported.shape;
  shape_only.model_name = printable(imported.name, 80);
  draft.document["model"] = to_json(shape_only)["model"];
  draft.own_model = true;
  for (const auto& [key, value] : s.json().items()) s.take(key);
  for (const std::string& warning : imported.warnings) s.ignore("model_type", warning);
}

const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats = {
      {"config.json", "json", {"model_type"}, import_model_file},
      {"deepspeed", "json", {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"}, import_deepspeed},
      {"torchtitan", "toml", {"training", "parallelism", "activation_checkpoint", "job"}, import_torchtitan},
      {"accelerate", "yaml", {"distributed_type"}, import_accelerate},
      {"llm-foundry", "yaml", {"device_train_microbatch_size", "global_train_batch_size", "device_train_grad_accum"}, import_llm_foundry},
      {"torchtune", "yaml", {"custom_sharded_layers", "enable_activation_checkpointing", "checkpointer"}, import_torchtune},
      {"kempner-forge", "toml", {"train", "distributed"}, import_kempner_forge},
      {"lingua", "yaml", {"grad_acc_steps"}, import_lingua},
      {"llama-cookbook", "yaml", {"batch_size_training", "context_length"}, import_llama_cookbook},
      {"fms-fsdp", "yaml", {"low_cpu_fsdp", "selective_checkpointing", "use_torch_compile"}, import_fms_fsdp},
      {"aws-fsdp", "yaml", {"hidden_width", "max_context_width"}, import_aws_fsdp},
  };
  return kFormats;
}

std::string ending_of(const std::string& path) {
  const std::string ending = path.substr(std::min(path.size(), path.find_last_of('.') + 1));
  return ending == "yml" ? "yaml" : ending;
}

Json parsed(const ConfigFile& file, const std::string& ending) {
  if (ending == "json") return parse_json(file.text, file.path);
  if (ending == "yaml") return parse_yaml(file.text, file.path);
  if (ending == "toml") return parse_toml(file.text, file.path);
  throw InputError(printable(file.path, 400), "", "is neither .json nor .yaml nor .toml");
}

const Format& format_of(const Json& json, const std::string& ending, const std::string& path) {
  for (const Format& format : formats()) {
    const bool told = json.is_object() && std::any_of(format.marks.begin(), format.marks.end(), [&](const char* mark) { return json.contains(mark); });
    if (ending == format.ending && told) return format;
  }
  throw InputError(printable(path, 400), "", "is no configuration that is known",
                   "known: config.json of Hugging Face, accelerate, torchtitan, DeepSpeed, llm-foundry, torchtune, KempnerForge, Lingua, flags of "
                   "llama-cookbook, fms-fsdp and AWS's FSDP sample");
}

/// "dgx-a100-4", or a profile's own name, of which the files say how many there are.
struct Nodes {
  std::string name;
  bool counted = false;
  std::int64_t nodes = 1, gpus = 1;
  [[nodiscard]] std::int64_t ranks() const { return nodes * gpus; }
};

Nodes nodes_of(const std::string& cluster, const Draft& draft, std::vector<IgnoredKey>& ignored) {
  const std::vector<std::string> known = hw::node_names();
  Nodes nodes{cluster};
  nodes.counted = std::find(known.begin(), known.end(), cluster) == known.end();
  std::tie(nodes.name, nodes.nodes) = cluster_of(cluster);
  const auto own = static_cast<std::int64_t>(hw::node_profile(nodes.name).at("gpus"));
  nodes.gpus = own;
  if (nodes.counted) {
    if (draft.processes && *draft.processes != nodes.ranks())
      ignored.push_back({"--cluster", cluster, fmt::format("stands before the {} processes of the files", *draft.processes)});
    return nodes;
  }
  const std::int64_t processes = draft.processes.value_or(draft.machines.value_or(1) * own);
  nodes.nodes = draft.machines.value_or((processes + own - 1) / own);
  if (processes % nodes.nodes != 0 || processes / nodes.nodes > own)
    throw InputError("--cluster", "", fmt::format("{} processes on {} machines don't go with {} GPUs in a node", processes, nodes.nodes, own),
                     "name another node, or NAME-N");
  nodes.gpus = processes / nodes.nodes;
  return nodes;
}

/// The global batch and what each rank does: one follows from the other two.
void complete_batch(const Draft& draft, const Nodes& nodes, Object& batch, std::vector<IgnoredKey>& ignored) {
  const auto given = [&](const char* key) { return batch.contains(key) ? batch[key].get<std::int64_t>() : 0; };
  const std::int64_t micro = given("micro_batch"), accumulated = given("grad_accum"), global = draft.global_batch.value_or(0), ranks = nodes.ranks();
  if (global == 0 || (micro > 0 && accumulated > 0)) {
    const std::int64_t product = std::max<std::int64_t>(micro, 1) * std::max<std::int64_t>(accumulated, 1) * ranks;
    if (global > 0 && product != global)
      ignored.push_back({"", "global batch", fmt::format("{} is not {} x {} on {} ranks, which is what each rank is told", global, micro, accumulated, ranks)});
    if (micro == 0) batch["micro_batch"] = 1;
    return;
  }
  const std::int64_t known = std::max<std::int64_t>({micro, accumulated, 1});
  if (global % (known * ranks) != 0)
    throw InputError("the global batch", "", fmt::format("{} sequences can't be divided into {} on each of {} ranks", global, known, ranks),
                     "choose another number of nodes");
  batch[micro > 0 ? "grad_accum" : "micro_batch"] = global / (known * ranks);
}

void complete_model(const std::string& model, Draft& draft) {
  if (model.empty() && !draft.own_model) throw InputError("command line", "", "the files don't say which model", "add its config.json, or --model NAME");
  if (model.empty()) return;
  const ImportedModel found = find_model(model);
  Scenario shape_only;
  shape_only.model = found.shape;
  shape_only.model_name = printable(found.name, 80);
  draft.document["model"] = to_json(shape_only)["model"];
}

void complete(const std::string& cluster, Draft& draft, ImportedConfigs& result) {
  const Nodes nodes = nodes_of(cluster, draft, result.ignored);
  draft.set("/cluster/node", nodes.name);
  draft.set("/cluster/nodes", nodes.nodes);
  draft.set("/cluster/gpus_per_node", nodes.gpus);
  Object& batch = draft.document["batch"];
  if (batch.is_null()) batch = Object::object();
  complete_batch(draft, nodes, batch, result.ignored);
  if (batch.contains("seq_len")) return;
  constexpr std::int64_t kDefaultSequence = 4096;
  const Object& model = draft.document["model"];
  const std::int64_t longest = model.contains("max_positions") ? model["max_positions"].get<std::int64_t>() : 0;
  batch["seq_len"] = longest > 0 ? std::min(longest, kDefaultSequence) : kDefaultSequence;
  result.warnings.push_back(fmt::format("the files don't say how long a sequence is: {} tokens", batch["seq_len"].get<std::int64_t>()));
}

}  // namespace

void set_model(Settings& settings, const char* key, const std::string& name, Draft& draft) {
  static constexpr std::pair<const char*, const char*> kNames[] = {{"llama2_7b", "llama-2-7b"},           {"llama3_8b", "llama-3-8b"},
                                                                   {"llama3_1_8b", "llama-3-8b"},         {"llama3.1_8b", "llama-3-8b"},
                                                                   {"llama3_70b", "llama-3-70b"},         {"llama3_1_70b", "llama-3-70b"},
                                                                   {"llama3.1_70b", "llama-3-70b"},       {"mistral_7b", "mistral-7b-v0.1"},
                                                                   {"gemma2_9b", "gemma-2-9b"},           {"qwen2_5_7b", "qwen2.5-7b"},
                                                                   {"qwen2_5_7b_base", "qwen2.5-7b"},     {"qwen2_5_7b_instruct", "qwen2.5-7b"},
                                                                   {"phi3_mini", "phi-3-mini-4k"},        {"mpt-7b", "mpt-7b"},
                                                                   {"llama-2-7b-hf", "llama-2-7b"},       {"meta-llama-3-8b", "llama-3-8b"},
                                                                   {"meta-llama-3-70b", "llama-3-70b"},   {"falcon-7b", "falcon-7b"},
                                                                   {"mistral-7b-v0.1", "mistral-7b-v0.1"}};
  std::string lower = name;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [theirs, ours] : kNames) {
    if (lower != theirs) continue;
    draft.document["model"] = {{"preset", ours}};
    draft.own_model = true;
    return;
  }
  settings.ignore(key, "\"" + printable(name, 60) + "\" is no model that is built in: its config.json or --model is needed");
}

ImportedConfigs import_configs(const std::vector<ConfigFile>& files, const std::string& model, const std::string& cluster) {
  Draft draft;
  ImportedConfigs result;
  for (const ConfigFile& file : files) {
    const std::string ending = ending_of(file.path);
    Settings settings(parsed(file, ending), file.path);
    const Format& format = format_of(settings.json(), ending, file.path);
    format.read(settings, draft);
    settings.finish();
    result.formats.emplace_back(format.name);
    const std::vector<IgnoredKey> ignored = settings.ignored();
    result.ignored.insert(result.ignored.end(), ignored.begin(), ignored.end());
  }
  complete_model(model, draft);
  complete(cluster, draft, result);
  Object document = {{"name", printable(files.empty() ? model : files.front().path, 80)}};
  for (const char* section : {"model", "cluster", "policy", "batch", "precision", "recompute", "kernels", "optimizer", "loader"}) {
    if (draft.document.contains(section)) document[section] = draft.document[section];
  }
  result.document = std::move(document);
  return result;
}

std::vector<ConfigFile> read_configs(const std::vector<std::string>& paths) {
  std::vector<ConfigFile> files;
  for (const std::string& path : paths) files.push_back({path, read_text_file(path, kMaxConfigBytes)});
  return files;
}

}  // namespace stepcast::scenarios
