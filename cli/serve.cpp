// `stepcast serve`: a page in the browser whose sliders and switches change a scenario, with its forecast. docs/serve.md; test: tests/golden/serve_test.cpp.
#include <cstdio>
#include <memory>

#include "cli/command.hpp"
#include "cli/load.hpp"
#include "cli/page/page.hpp"
#include "cli/serve/server.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

constexpr std::uint16_t kPort = 8642;

struct ServeOptions {
  ScenarioChoice choice;
  std::string host = "127.0.0.1";
  std::uint16_t port = kPort;
};

/// What forecasts the same on the command line.
std::string run_command(const ScenarioChoice& choice) {
  std::string command = "stepcast run";
  if (!choice.scenario.empty()) command += " " + shell_word(choice.scenario);
  if (!choice.model.empty()) command += " --model " + shell_word(choice.model);
  for (const std::string& config : choice.configs) command += " --config " + shell_word(config);
  if (!choice.cluster.empty()) command += " --cluster " + shell_word(choice.cluster);
  for (const std::string& set : choice.changes.sets) command += " --set " + shell_word(set);
  if (choice.changes.seed) command += " --seed " + std::to_string(*choice.changes.seed);
  return command;
}

Exit serve(const ServeOptions& options) {
  require_server();
  if (!has_page())
    throw InputError("serve", "", "this build has no page (Node.js or its packages were not there)", "stepcast run --out DIR writes text and JSON");
  LoadedTemplate loaded = load_template(options.choice);
  Served served{LiveScenario(std::move(loaded.scenario)), std::move(loaded.warnings), run_command(options.choice)};
  (void)answer(served, {});  // what can't be forecast is said here
  Server server(options.host, options.port, Routes(std::move(served), options.host));
  print(server.url() + "\n");
  std::fputs("stepcast: serving this page until Ctrl-C\n", stderr);
  server.run();
  return Exit::ok;
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto options = std::make_shared<ServeOptions>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("serve", "A page whose sliders and switches change the scenario and show its forecast at once");
  options->choice.add_to(*command);
  command->add_option("--port", options->port, "Port to listen on; 0: any that is free")->type_name("N")->check(CLI::Range(0, 65535))->capture_default_str();
  command->add_option("--host", options->host, "Address to listen on; by default this machine alone can open the page")
      ->type_name("ADDRESS")
      ->capture_default_str();
  command->footer("Examples:\n  stepcast serve 7b-32xa100\n  stepcast serve --model config.json --cluster dgx-a100-4 --port 0");
  command->callback([options, &action] { action = [options] { return serve(*options); }; });
}

}  // namespace stepcast::cli
