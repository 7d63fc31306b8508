// What `stepcast diagnose` makes of the first rank with a device: the scenario behind it, MFU, and with --scenario its simulation. Test: tests/golden/diagnose_scenario_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/diagnose/trace_scenario.hpp"

namespace stepcast::cli {

struct InferenceOptions {
  std::string file, model;  // to write the scenario into, and to simulate it then; config.json or a preset's name
  ScenarioChanges changes;
  void add_to(CLI::App& command);
};

struct Inferred {
  std::optional<TraceScenario> scenario;
  std::optional<Utilisation> utilisation;
  std::optional<SideBySide> compared;
  bool training = false;  // a backward was recorded
};

/// Throws InputError on a model or a change that can't be read.
Inferred infer(const trace::profile::RankDiagnosis& rank, const InferenceOptions& options);
/// The scenario, and beside it a list of its keys with how sure each is. `force` replaces files that are there. Throws InputError.
void write_scenario(const Inferred& inferred, const InferenceOptions& options, bool force);

nlohmann::ordered_json json_of(const Inferred& inferred);
std::string text_of(const Inferred& inferred, const InferenceOptions& options);

}  // namespace stepcast::cli
