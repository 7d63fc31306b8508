// See answer.hpp.
#include "cli/serve/answer.hpp"

#include <future>

#include "cli/out_of_memory.hpp"
#include "cli/page/run_page.hpp"
#include "cli/predict.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

/// As `run --json` has them.
OrderedJson figures_of(const Report& r) {
  if (r.outcome != "ok") return OrderedJson::object();
  OrderedJson json = {{"step_time_s", r.step_time_s}, {"tokens_per_s_per_gpu", r.tokens_per_s_per_gpu}};
  json["mfu"] = r.has_peak ? OrderedJson(r.mfu) : OrderedJson(nullptr);
  json["peak_reserved_bytes"] = r.peak_reserved_bytes;
  return json;
}

}  // namespace

std::string shell_word(const std::string& text) {
  static constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

OrderedJson answer(const Served& served, const ForecastRequest& request) {
  const Settled settled = served.scenario.settle(request.settings);
  auto controls = std::async(std::launch::async, [&] { return served.scenario.controls(settled, request.settings); });  // beside the forecast
  Prediction prediction = predict_last_step(settled.scenario, served.warnings);
  Report& report = prediction.report;
  if (request.remedies && report.outcome == "out_of_memory") report.out_of_memory.remedies = remedies(prediction.scenario);
  OrderedJson json = to_json(live_page(prediction));
  json["schema"] = kServeSchema;
  json["outcome"] = report.outcome;
  json["figures"] = figures_of(report);
  json["controls"] = controls.get();
  json["taken_back"] = settled.taken_back;
  std::string command = served.command;
  for (const std::string& set : settled.sets) command += " --set " + shell_word(set);
  json["set"] = settled.sets;
  json["run"] = command;
  return json;
}

}  // namespace stepcast::cli
