// Test: tests/golden/diagnose_scenario_test.cpp.
#include "cli/report/diagnose/scenario.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {

namespace {

constexpr std::size_t kValueWidth = 28;

/// How a user settles a key that is not sure.
std::string setting_for(const InferredKey& key) {
  return fmt::format("--set {}={}", key.pointer, key.certainty == Certainty::missing ? "VALUE" : key_value_text(key.value));
}

OrderedJson keys_of(const ScenarioDraft& draft) {
  OrderedJson keys = OrderedJson::array();
  for (const InferredKey& key : draft.keys()) {
    const bool sure = key.certainty == Certainty::seen || key.certainty == Certainty::given;
    keys.push_back({{"pointer", key.pointer},
                    {"value", key.value},
                    {"certainty", name(key.certainty)},
                    {"because", key.because},
                    {"set", sure || !key.settable ? OrderedJson() : OrderedJson(setting_for(key))}});
  }
  return keys;
}

}  // namespace

std::string key_value_text(const OrderedJson& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.is_object() ? "{...}" : value.dump();
}

OrderedJson json_of(const TraceScenario& scenario) {
  return {{"complete", scenario.scenario.has_value()},
          {"problem", scenario.problem.empty() ? OrderedJson() : OrderedJson(scenario.problem)},
          {"keys", keys_of(scenario.draft)},
          {"document", scenario.document}};
}

OrderedJson json_of(const std::optional<Utilisation>& u) {
  if (!u) return {};
  return {{"step_time_s", u->step_s},
          {"tokens_per_s_per_gpu", u->tokens_per_s_per_gpu},
          {"model_flops_per_step", u->model_flops_per_step},
          {"model_flop_per_s", u->flops_per_s()},
          {"peak_flop_per_s", u->peak_flops},
          {"mfu", u->mfu()}};
}

OrderedJson json_of(const SideBySide& compared) {
  OrderedJson times = OrderedJson::array();
  for (const ComparedTime& t : compared.times) times.push_back({{"name", t.name}, {"traced_us", t.traced_us}, {"predicted_us", t.predicted_us}});
  return {{"outcome", compared.outcome}, {"per_step", times}};
}

OrderedJson keys_document(const TraceScenario& scenario, const std::string& file) {
  return {{"schema", "stepcast.inferred/1"}, {"scenario", file}, {"keys", keys_of(scenario.draft)}};
}

std::string text_of(const TraceScenario& scenario) {
  Table table({"scenario behind this trace", "value", "", "because"}, {0, 1, 2, 3});
  for (const InferredKey& key : scenario.draft.keys())
    table.add({key.pointer, printable(key_value_text(key.value), kValueWidth), name(key.certainty), key.because});
  std::string text = "\n" + table.render();
  if (scenario.problem.empty()) return text;
  text += wrapped("It can't be run yet: " + scenario.problem, 2);
  for (const InferredKey& key : scenario.draft.keys()) {
    if (key.certainty == Certainty::missing && key.settable) text += "    " + setting_for(key) + "\n";
  }
  return text;
}

std::string text_of(const std::optional<Utilisation>& u) {
  if (!u) return "";
  return fmt::format("\nMFU {} with the inferred model: {} a step of {}, {:.1f} of {:.1f} TFLOP/s, {} tokens/s/GPU\n", percent_text(u->mfu()),
                     flops_text(u->model_flops_per_step), time_text(u->step_s), u->flops_per_s() * 1e-12, u->peak_flops * 1e-12,
                     count_text(u->tokens_per_s_per_gpu));
}

std::string text_of(const SideBySide& compared) {
  if (compared.times.empty()) return fmt::format("\nThe scenario behind this trace does not run: {}\n", compared.outcome);
  Table table({"per step", "traced", "predicted", "predicted / traced"});
  for (const ComparedTime& t : compared.times) {
    if (t.traced_us == 0 && t.predicted_us == 0) continue;
    const std::string ratio = t.traced_us > 0 ? fmt::format("{:.3f}", t.predicted_us / t.traced_us) : "";
    table.add({t.name, time_text(t.traced_us * 1e-6), time_text(t.predicted_us * 1e-6), ratio});
  }
  return "\n" + table.render();
}

}  // namespace stepcast::cli
