// `stepcast demo`: runs the stages of the built-in case study in order, prints how far each gets and why, and leaves report and trace of the last.
// The stages are the built-in scenarios named NN-*. docs/commands.md; test: tests/golden/cli_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/page/page.hpp"
#include "cli/predict.hpp"
#include "cli/publish.hpp"
#include "cli/report/table.hpp"
#include "cli/report/text.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

struct DemoOptions {
  std::vector<std::string> stages;
  ScenarioChanges changes;
  OutputChoice output;
};

bool is_stage(const std::string& name) {
  const auto digit = [&](std::size_t i) { return std::isdigit(static_cast<unsigned char>(name[i])) != 0; };
  return name.size() > 3 && digit(0) && digit(1) && name[2] == '-';
}

std::vector<std::string> stages_of(const DemoOptions& options) {
  if (!options.stages.empty()) return options.stages;
  std::vector<std::string> stages = scenarios::scenario_names();
  std::erase_if(stages, [](const std::string& name) { return !is_stage(name); });
  if (stages.empty()) throw InputError("demo", "", "this build has no case study", "name the scenarios to run");
  return stages;
}

std::vector<std::string> row(const Report& r) {
  const std::string peak = size_text(static_cast<double>(r.peak_reserved_bytes));
  if (r.outcome != "ok") return {r.scenario.name, "-", "-", "-", "-", peak, "-", r.outcome};
  const auto percent_or_dash = [&](double value) { return r.has_peak ? percent_text(value) : "-"; };
  return {r.scenario.name,
          time_text(r.step_time_s),
          count_text(r.tokens_per_s_per_gpu),
          percent_or_dash(r.mfu),
          percent_or_dash(r.hfu),
          peak,
          time_text(r.exposed_comm_s),
          r.bound};
}

std::string progression(const std::vector<Report>& reports) {
  Table table({"stage", "step time", "tokens/s/GPU", "MFU", "HFU", "peak reserved", "exposed comm", "bound"}, {0, 7});
  for (const Report& r : reports) table.add(row(r));
  return table.render();
}

/// A bar per stage on one scale, MFU where the device is known; stages may differ in tokens per step, so step times don't compare.
std::string bars(const std::vector<Report>& reports) {
  double top = 0;
  const auto value = [](const Report& r) { return r.outcome != "ok" ? 0 : r.has_peak ? r.mfu : r.tokens_per_s_per_gpu; };
  for (const Report& r : reports) top = std::max(top, value(r));
  std::string text;
  for (const Report& r : reports) {
    const std::string number = r.outcome != "ok" ? r.outcome : r.has_peak ? "MFU " + percent_text(r.mfu) : count_text(r.tokens_per_s_per_gpu) + " tokens/s/GPU";
    text += fmt::format("\n  {}\n  {:<50} {}\n", r.scenario.name, bar(top > 0 ? value(r) / top : 0, 50), number);
    text += wrapped(r.scenario.why, 4);
    if (r.outcome == "ok") text += wrapped(fmt::format("bound by {}: {}", r.bound, r.bound_reason), 4);
  }
  return text;
}

nlohmann::ordered_json demo_json(const std::vector<Report>& reports, const std::string& folder) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (const Report& r : reports) stages.push_back({{"name", r.scenario.name}, {"why", r.scenario.why}, {"report", to_json(r)}});
  return {{"stages", stages}, {"out", folder}};
}

/// Stages with the same sequence length make one series; the first one is explained stage by stage, the others are tables.
std::vector<std::vector<Report>> series_of(const std::vector<Report>& reports) {
  std::vector<std::vector<Report>> series;
  for (const Report& report : reports) {
    const auto same = [&](const std::vector<Report>& one) { return one.front().scenario.seq_len == report.scenario.seq_len; };
    const auto found = std::find_if(series.begin(), series.end(), same);
    if (found == series.end()) series.push_back({report});
    else found->push_back(report);
  }
  return series;
}

std::string demo_text(const std::vector<Report>& reports, const std::string& folder) {
  const auto series = series_of(reports);
  std::string text = wrapped(headline(reports.front().scenario), 0) + "\n" + progression(series.front()) + bars(series.front());
  for (std::size_t i = 1; i < series.size(); ++i) {
    text += fmt::format("\nThe same with sequences of {}\n\n", series[i].front().scenario.seq_len) + progression(series[i]);
  }
  return text + fmt::format("\nReport of {1}: {2}{0}/report.txt and {0}/report.json; its trace, for https://ui.perfetto.dev: {0}/trace.json.gz\n", folder,
                            series.front().back().scenario.name, has_page() ? folder + "/" + kPageFile + ", " : "");
}

Exit demo(const DemoOptions& options) {
  const std::string& folder = options.output.folder;
  check_folder(folder, options.output.force);
  std::vector<Report> reports;
  std::optional<Prediction> last;  // of the first series: the one to publish
  for (const std::string& stage : stages_of(options)) {
    Prediction prediction = predict(scenarios::read_scenario(stage, options.changes.all()));
    reports.push_back(prediction.report);
    if (prediction.report.scenario.seq_len == reports.front().scenario.seq_len) last = std::move(prediction);
  }
  publish(*last, folder, options.output.force, {}, series_of(reports).front());
  print(options.output.json ? demo_json(reports, folder).dump(2) + "\n" : demo_text(reports, folder));
  return Exit::ok;
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  auto options = std::make_shared<DemoOptions>();
  options->output.folder = "out/demo";
  CLI::App* command = app.add_subcommand("demo", "Run the built-in case study, stage by stage");
  command->add_option("stages", options->stages, "Other scenarios to run in order")->type_name("SCENARIO");
  options->changes.add_to(*command);
  options->output.add_json(*command);
  options->output.add_folder(*command);
  command->footer("Example:\n  stepcast demo --out out/demo");
  command->callback([options, &action] { action = [options] { return demo(*options); }; });
}

}  // namespace stepcast::cli
