// `stepcast diagnose`: reads profiles of PyTorch (or our own traces) and says where the time went. docs/diagnose.md; test: tests/golden/diagnose_test.cpp.
#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/report/diagnose/json.hpp"
#include "cli/report/diagnose/text.hpp"
#include "trace/profile/import.hpp"

namespace stepcast::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> traces;
  OutputChoice output;
};

/// One rank at a time: of each, only what the comparison needs is kept.
Exit diagnose(const Options& options) {
  Json ranks = Json::array();
  std::string text;
  std::vector<trace::profile::RankSummary> summaries;
  for (const std::string& path : options.traces) {
    for (const trace::profile::Input& input : trace::profile::inputs_at(path)) {
      const auto source = input.open();
      const trace::profile::RankDiagnosis rank = trace::profile::diagnose(trace::profile::import_profile(*source, input.label));
      summaries.push_back(trace::profile::summary_of(rank.profile, static_cast<std::int64_t>(summaries.size())));
      if (options.output.json) ranks.push_back(json_of(rank));
      else text += (text.empty() ? "" : "\n") + text_of(rank);
    }
  }
  const trace::profile::AcrossRanks across = trace::profile::compare_ranks(std::move(summaries));
  if (options.output.json) {
    const Json json = {{"schema", "stepcast.diagnose/1"}, {"ranks", std::move(ranks)}, {"across_ranks", json_of(across)}};
    text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  } else {
    text += text_of(across);
  }
  print(text);
  return Exit::ok;
}

}  // namespace

void add_diagnose(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("diagnose", "Where the time of a profiled run went, why, and what to change");
  command->add_option("traces", options->traces, "PyTorch profiler traces: .json, .json.gz, .zip, or folders of them (one file a rank)")
      ->type_name("TRACE...")
      ->required();
  options->output.add_json(*command);
  command->footer("Examples:\n  stepcast diagnose trace.json.gz\n  stepcast diagnose --json run/ > diagnosis.json\n");
  command->callback([options, &action] { action = [options] { return diagnose(*options); }; });
}

}  // namespace stepcast::cli
