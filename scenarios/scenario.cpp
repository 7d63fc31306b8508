// Reading and writing of whole scenarios. See scenario.hpp; the steps are layers.hpp (files), supported.hpp (not yet), sections.hpp (keys), validate.hpp (rules).
#include "scenarios/scenario.hpp"

#include <algorithm>
#include <filesystem>

#include "hw_models/input_error.hpp"
#include "scenarios/fields.hpp"
#include "scenarios/layers.hpp"
#include "scenarios/model_section.hpp"
#include "scenarios/scenario_template.hpp"
#include "scenarios/sections.hpp"
#include "scenarios/supported.hpp"
#include "scenarios/validate.hpp"

namespace stepcast::scenarios {
namespace {

constexpr const char* kSchema = "stepcast.scenario/1";

template <class Section>
void read_section(Reader& root, const char* key, Section& section) {
  if (auto reader = root.maybe_object(key)) {
    FieldReader fields(std::move(*reader));
    describe(fields, section);
    fields.finish();
  }
}

template <class Section>
nlohmann::ordered_json written(const Section& section) {
  FieldWriter writer;
  Section copy = section;
  describe(writer, copy);
  return writer.take();
}

/// Rethrows what the hardware profiles say about a name with the place where the scenario names it.
template <class Action>
auto at_place(const Reader::Origin& origin, const char* pointer, Action action) {
  try {
    return action();
  } catch (const InputError& error) {
    std::string what = error.what();
    if (const std::string prefix = "hardware: "; what.starts_with(prefix)) what.erase(0, prefix.size());
    throw InputError(origin(pointer), pointer, what);
  }
}

/// A profile that is a file is sought beside the file that names it (with --set: from the working directory).
void locate(std::string& profile, const std::string& named_in) {
  if (hw::is_profile_file(profile)) profile = (std::filesystem::path(named_in).parent_path() / profile).lexically_normal().string();
}

void read_cluster(Reader& root, bool fixed_costs, const Reader::Origin& origin, Cluster& cluster) {
  Reader reader = root.object("cluster");
  const bool own_size = reader.has("gpus_per_node");
  if (fixed_costs && !reader.has("node")) cluster.node.clear();
  read_section(root, "cluster", cluster);
  locate(cluster.node, origin("/cluster/node"));
  locate(cluster.gpu, origin("/cluster/gpu"));
  if (!cluster.node.empty()) {
    const auto profile = at_place(origin, "/cluster/node", [&] { return hw::find_node_profile(cluster.node); });
    if (!own_size) cluster.gpus_per_node = static_cast<std::int32_t>(profile->at("gpus"));
    if (cluster.gpu.empty()) cluster.gpu = profile->default_gpu;
  }
  if (!cluster.gpu.empty()) at_place(origin, "/cluster/gpu", [&] { return hw::find_gpu_profile(cluster.gpu); });
}

/// `steps` alone is split into the parts of the profiler's schedule; the parts alone add up to `steps`.
void read_run(Reader& root, Run& run) {
  const auto reader = root.maybe_object("run");
  const bool steps = reader && reader->has("steps");
  const bool parts = reader && (reader->has("wait") || reader->has("warmup") || reader->has("active"));
  read_section(root, "run", run);
  if (steps && !parts) {
    run.warmup = std::min(run.warmup, run.steps - 1);
    run.active = std::clamp(run.steps - 2, 1, run.active);
    run.wait = run.steps - run.warmup - run.active;
  } else if (parts && !steps) {
    run.steps = run.wait + run.warmup + run.active;
  }
}

void read_batch(Reader& root, bool fixed_costs, program::Batch& batch) {
  if (fixed_costs) batch.seq_len = 2048;  // only tokens per second depend on it
  if (!fixed_costs && !root.object("batch").has("seq_len")) root.object("batch").fail("seq_len", "is missing");
  read_section(root, "batch", batch);
}

/// DDP reduces gradients in the type of the parameters, ZeRO in that of the computation.
void read_precision(Reader& root, Scenario& scenario) {
  const auto reader = root.maybe_object("precision");
  const bool own_reduce = reader && reader->has("reduce");
  read_section(root, "precision", scenario.precision);
  if (own_reduce) return;
  if (scenario.policy.framework == program::Framework::ddp) scenario.precision.reduce = scenario.precision.master;
  if (program::is_zero(scenario.policy.framework)) scenario.precision.reduce = scenario.precision.param;
}

/// DeepSpeed's own Adam is fused, and so is that of native kernels.
void read_optimizer(Reader& root, Scenario& scenario) {
  if (program::is_zero(scenario.policy.framework) || scenario.kernels.set == program::KernelSet::native)
    scenario.optimizer.implementation = program::OptimizerImpl::fused;
  read_section(root, "optimizer", scenario.optimizer);
}

Scenario read_sections(Reader& root, const Reader::Origin& origin) {
  Scenario scenario;
  root.maybe("name", scenario.name);
  root.maybe("why", scenario.why);
  if (root.has("schema") && root.text("schema") != kSchema) root.fail("schema", std::string("this program reads \"") + kSchema + "\"");
  const bool fixed_costs = root.has("fixed_costs");
  Model model = read_model(root.object("model"), fixed_costs);
  scenario.model_name = std::move(model.name);
  scenario.model = model.shape;
  read_cluster(root, fixed_costs, origin, scenario.cluster);
  read_section(root, "policy", scenario.policy);
  read_batch(root, fixed_costs, scenario.batch);
  read_precision(root, scenario);
  read_section(root, "recompute", scenario.recompute);
  read_section(root, "kernels", scenario.kernels);
  read_optimizer(root, scenario);
  read_section(root, "allocator", scenario.allocator);
  read_section(root, "loader", scenario.loader);
  read_section(root, "host", scenario.host);
  read_run(root, scenario.run);
  if (fixed_costs) read_section(root, "fixed_costs", scenario.fixed_costs.emplace());
  root.finish();
  return scenario;
}

Layers with_sets(Layers layers, Sets sets) {
  for (const std::string& set : sets) apply_set(layers, set);
  return layers;
}

Source text_source(std::string_view text, const std::string& file) {
  const std::size_t slash = file.find_last_of('/');
  return {file, std::string(text), slash == std::string::npos ? "" : file.substr(0, slash), false};
}

Scenario read_layers(const Layers& layers) {
  const Reader::Origin origin = [&layers](std::string_view pointer) { return layers.origin(pointer); };
  Reader root(layers.merged, origin, "", [&layers](std::string_view pointer) { return layers.spelling(pointer); });
  refuse_unsupported(layers.merged, origin);
  Scenario scenario = read_sections(root, origin);
  if (scenario.name.empty()) scenario.name = layers.stem;
  validate(scenario, origin);
  return scenario;
}

/// What differs from the node profile; the rest keeps the profile's provenance.
hw::ClusterOverrides overrides(const Cluster& cluster) {
  const bool own_size = cluster.gpus_per_node != static_cast<std::int32_t>(hw::find_node_profile(cluster.node)->at("gpus"));
  return {cluster.gpu,           own_size ? std::optional(cluster.gpus_per_node) : std::nullopt,
          cluster.nics_per_node, cluster.nic_rate,
          cluster.nvlink_rate,   cluster.oversubscription,
          cluster.nvlink,        cluster.fabric,
          cluster.gpudirect,     cluster.peer_access};
}

}  // namespace

ScenarioTemplate::ScenarioTemplate(const std::string& path_or_name, Sets sets)
    : layers_(std::make_shared<const Layers>(with_sets(stack(find_source(path_or_name)), sets))) {}
ScenarioTemplate::ScenarioTemplate(std::string_view text, const std::string& file, Sets sets)
    : layers_(std::make_shared<const Layers>(with_sets(stack(text_source(text, file)), sets))) {}
Scenario ScenarioTemplate::with(Sets sets) const { return read_layers(with_sets(*layers_, sets)); }

Scenario read_scenario(const std::string& path_or_name, Sets sets) { return ScenarioTemplate(path_or_name, sets).with({}); }
Scenario read_scenario_text(std::string_view text, const std::string& file, Sets sets) { return ScenarioTemplate(text, file, sets).with({}); }

nlohmann::ordered_json to_json(const Scenario& scenario) {
  nlohmann::ordered_json json;
  json["schema"] = kSchema;
  json["name"] = scenario.name;
  json["why"] = scenario.why;
  json["model"] = {{"name", scenario.model_name}};
  json["model"].update(written(scenario.model));
  json["cluster"] = written(scenario.cluster);
  json["policy"] = written(scenario.policy);
  json["batch"] = written(scenario.batch);
  json["precision"] = written(scenario.precision);
  json["recompute"] = written(scenario.recompute);
  json["kernels"] = written(scenario.kernels);
  json["optimizer"] = written(scenario.optimizer);
  json["allocator"] = written(scenario.allocator);
  json["loader"] = written(scenario.loader);
  json["host"] = written(scenario.host);
  json["run"] = written(scenario.run);
  if (scenario.fixed_costs) json["fixed_costs"] = written(*scenario.fixed_costs);
  return json;
}

std::string to_json_text(const Scenario& scenario) { return to_json(scenario).dump(2); }

program::StepSpec step_spec(const Scenario& scenario) {
  program::StepSpec spec{
      scenario.model, scenario.policy, scenario.batch, scenario.loader.input, scenario.precision, scenario.recompute, scenario.kernels, scenario.optimizer, {}};
  if (scenario.fixed_costs) spec.kernels.set = program::KernelSet::fixed;
  spec.world = {scenario.cluster.gpus_per_node, scenario.cluster.nodes};
  spec.sync_each_step = scenario.host.sync_each_step;
  spec.sync_each_phase = scenario.host.sync_each_phase;
  return spec;
}

hw::Profile gpu(const Scenario& scenario) {
  hw::Profile profile = hw::gpu_profile(scenario.cluster.gpu);
  if (const auto outside = scenario.allocator.memory_outside_pool)
    profile.constants.insert_or_assign("memory_outside_pool", hw::Constant{static_cast<double>(*outside), "scenario", hw::Origin::assumed});
  return profile;
}

bool is_random(const Scenario& scenario) {
  const Jitter& j = scenario.run.jitter;
  const bool pauses = (scenario.host.gc_period.si() > 0 && !scenario.host.gc_synchronised) || j.pause_period.si() > 0;
  return j.kernel > 0 || j.host > 0 || j.collective > 0 || j.rank_speed > 0 || scenario.loader.batch_time_spread > 0 || pauses;
}

bool steps_vary(const Scenario& scenario) { return is_random(scenario) || scenario.host.gc_period.si() > 0; }

std::int32_t traced_ranks(const Scenario& scenario) {
  if (scenario.run.ranks == Ranks::folded) return 1;
  const std::int64_t passes = std::max<std::int64_t>(1, scenario.run.active * scenario.model.layers * scenario.batch.grad_accum);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(kMaxTracedUnitPasses / passes, 1, std::min(scenario.run.traced_ranks, ranks(scenario))));
}

hw::Cluster hardware(const Scenario& scenario) { return hw::make_cluster(scenario.cluster.node, scenario.cluster.nodes, overrides(scenario.cluster)); }

}  // namespace stepcast::scenarios
