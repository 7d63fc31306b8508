// `stepcast check`: proves a scenario's program free of races, uses of freed memory and disagreeing collectives. docs/check.md; test: tests/golden/cli_test.cpp.
#include "program/check.hpp"
#include "hw_models/ordered_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/load.hpp"
#include "program/build.hpp"

namespace stepcast::cli {
namespace {

constexpr int kStepsChecked = 3;  // a start, a steady step and its repetition

struct CheckOptions {
  ScenarioChoice choice;
  OutputChoice output;
};

OrderedJson json_of(const program::OpPlace& place) {
  if (place.op == program::kNoOp) return nullptr;
  return {{"op", place.op}, {"step", place.step}, {"rank", place.rank}};
}

OrderedJson json_of(const std::vector<program::Finding>& findings, const program::Program& program) {
  OrderedJson rows = OrderedJson::array();
  for (const program::Finding& f : findings)
    rows.push_back({{"fault", program::name(f.fault)}, {"first", json_of(f.first)}, {"second", json_of(f.second)}, {"text", f.text}});
  return {{"clean", findings.empty()}, {"ops", program.ops.size()}, {"buffers", program.buffers.size()}, {"steps", program.steps.size()}, {"findings", rows}};
}

std::string text_of(const std::vector<program::Finding>& findings, const program::Program& program) {
  std::string text;
  for (const program::Finding& f : findings) text += f.text + "\n";
  if (findings.empty()) text = fmt::format("clean: {} ops, {} buffers, {} steps\n", program.ops.size(), program.buffers.size(), program.steps.size());
  else text += fmt::format("{} fault{}\n", findings.size(), findings.size() == 1 ? "" : "s");
  return text;
}

Exit check_command(const CheckOptions& options) {
  const scenarios::Scenario scenario = load(options.choice).scenario;
  const program::Program program = program::build_program(scenarios::step_spec(scenario), std::max(scenario.run.steps, kStepsChecked));
  const auto findings = program::check(program);
  print(options.output.json ? json_of(findings, program).dump(2) + "\n" : text_of(findings, program));
  return findings.empty() ? Exit::ok : Exit::check_failed;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand("check", "Prove that a scenario's schedule has no race, use after free or leak (exit 1 if it has)");
  options->choice.add_to(*command);
  options->output.add_json(*command);
  command->footer("Example:\n  stepcast check 7b-32xa100 --set /policy/backward_prefetch=NONE");
  command->callback([options, &action] { action = [options] { return check_command(*options); }; });
}

}  // namespace stepcast::cli
