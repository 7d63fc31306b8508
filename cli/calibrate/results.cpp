// See results.hpp.
#include "cli/calibrate/results.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/hardware.hpp"
#include "cli/train/run.hpp"
#include "cli/validate/row_scenario.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"
#include "hw_models/strict_json.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {
namespace {

constexpr std::size_t kBeginning = 4096;  // the schema is a result's first key

/// A profile that is a file may lie elsewhere by now, and counts as the machine's own.
bool other_gpu(const RunResult& result) {
  if (result.gpu.ends_with(".json")) return false;
  return base_name(hw::gpu_profile(result.gpu).name) != base_name(hw::gpu_profile(result.scenario.cluster.gpu).name);
}

/// Errors of a scenario name its own pointers: in a result they begin one level higher.
scenarios::Scenario scenario_in(const Json& document, const std::string& file) {
  try {
    return scenarios::read_scenario_text(document.dump(), file);
  } catch (const InputError& error) {
    const std::string text = error.what(), own = file + ": /";
    const std::size_t end = text.find(": ", own.size());
    if (!text.starts_with(own) || end == std::string::npos) throw;
    throw InputError(file, "/resolved_scenario/" + text.substr(own.size(), end - own.size()), text.substr(end + 2));
  }
}

}  // namespace

std::string beginning_of(const std::string& path, std::size_t bytes) {
  if (!std::filesystem::is_regular_file(path)) return "";
  std::string text(bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

bool is_result(const std::string& path) { return beginning_of(path, kBeginning).find(std::string("\"") + kTrainSchema + "\"") != std::string::npos; }

RunResult read_result(const std::string& path, const std::string& gpu, const std::string& node) {
  return parse_result(read_text_file(path, kMaxJsonBytes), printable(path, 400), gpu, node);
}

RunResult parse_result(std::string_view text, const std::string& file, const std::string& gpu, const std::string& node) {
  const Json json = parse_json(text, file);
  Reader reader(json, file);
  if (reader.text("schema") != kTrainSchema) reader.fail("schema", "is no result of a real run", kTrainSchema);
  if (reader.text("outcome") != "ok") reader.fail("outcome", "the run failed", "leave it out");
  RunResult result{file, "", {}, reader.number("tokens_per_s_per_gpu", kPositive)};
  Reader scenario = reader.object("resolved_scenario");
  Reader cluster = scenario.object("cluster");
  result.gpu = cluster.text("gpu");
  Json document = json.at("resolved_scenario");
  document["cluster"]["gpu"] = gpu;
  document["cluster"]["node"] = node;
  result.scenario = scenario_in(document, file);
  return result;
}

JudgedRow judge_result(const RunResult& result, const MachineFactors& factors) {
  JudgedRow row;
  row.id = result.file;
  row.measured.tokens_per_s_per_gpu = result.tokens_per_s_per_gpu;
  try {
    if (other_gpu(result)) throw NotExpressible("of another GPU: " + result.gpu);
    StepForecaster forecaster(result.scenario);
    forecast_step(forecaster, scaled(hardware_of(result.scenario), factors), false, row);
    row.error = row.forecast.tokens_per_s_per_gpu / result.tokens_per_s_per_gpu - 1;
  } catch (const NotExpressible& reason) { row.skipped = reason.what(); } catch (const InputError& refused) {
    row.skipped = refused.what();
  }
  return row;
}

}  // namespace stepcast::cli
