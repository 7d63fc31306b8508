// See row_scenario.hpp: what is refused, and the order in which settings are collected.
#include "cli/validate/row_scenario.hpp"

#include <cctype>

#include "hw_models/text_file.hpp"

namespace stepcast::cli {
namespace {

using calibration::Run;

/// Steps of a validation run: the allocator has settled in the second or third.
constexpr int kRowSteps = 4;

void refuse_other_parallelism(const Run& run) {
  if (run.count("tp").value_or(1) > 1) throw NotExpressible("tensor parallelism");
  if (run.count("pp").value_or(1) > 1) throw NotExpressible("pipeline parallelism");
}

void refuse_other_runtimes(const Run& run) {
  const std::string framework = lower(run.text("framework")), precision = lower(run.text("precision"));
  if (contains(framework, "jax") || contains(framework, "pjit")) throw NotExpressible("runs on XLA, whose overlap policy differs");
  if (contains(precision, "mxfp8") || contains(precision, "fp8-mx") || contains(precision, "nvfp4"))
    throw NotExpressible("8 bits or fewer with a scale for each 16 or 32 elements");
  if (contains(run.text("model"), "LoRA") || contains(run.text("note"), "LoRA")) throw NotExpressible("LoRA, whose rank the table does not give");
}

}  // namespace

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

RowScenario row_scenario(const Run& run, const calibration::SourceFacts& facts) {
  refuse_other_parallelism(run);
  refuse_other_runtimes(run);
  Settings settings;
  RowScenario row;
  for (const calibration::Fact* fact : facts.facts) {
    for (const auto& [pointer, value] : fact->settings) settings.put(pointer, value, Weight::fact);
  }
  put_policy(run, settings, row.notes);
  put_model(run, settings, row.notes);
  put_batch(run, settings, row.notes);
  put_cluster(run, settings, row.notes);
  put_precision(run, settings);
  put_recompute(run, settings, row.notes);
  put_kernels(run, settings);
  settings.put("/name", printable(run.id, 80), Weight::stated);
  settings.put("/run/steps", kRowSteps, Weight::fallback);
  settings.put("/run/wait", kRowSteps - 2, Weight::fallback);
  settings.put("/run/warmup", 1, Weight::fallback);
  settings.put("/run/active", 1, Weight::fallback);
  if (!facts.known) row.notes.emplace_back("unknown source: everything that the table does not say is at its default");
  row.document = settings.document();
  return row;
}

scenarios::Scenario scenario_of_row(const Run& run, const calibration::SourceFacts& facts, std::vector<std::string>& notes) {
  const RowScenario said = row_scenario(run, facts);
  notes.insert(notes.end(), said.notes.begin(), said.notes.end());
  return scenarios::read_scenario_text(said.document.dump(), run.id);
}

}  // namespace stepcast::cli
