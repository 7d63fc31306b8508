// `stepcast show`: the scenario as it will run, its units, what a step holds, and the ops of one rank. docs/commands.md; test: tests/golden/cli_test.cpp.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command.hpp"
#include "cli/load.hpp"
#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"
#include "program/build.hpp"
#include "program/count.hpp"
#include "program/model.hpp"
#include "program/text.hpp"
#include "program/units.hpp"

namespace stepcast::cli {
namespace {

struct ShowOptions {
  ScenarioChoice choice;
  OutputChoice output;
  bool resolved = false, program = false;
};

std::vector<program::Unit> units_of(const scenarios::Scenario& scenario) {
  program::Builder builder;
  return program::make_units(scenarios::step_spec(scenario), builder);
}

/// Sizes of a unit in bytes: what each rank owns of the master copy, and the gathered parameters.
OrderedJson unit_json(const scenarios::Scenario& scenario, const program::Unit& unit) {
  return {{"name", unit.name},
          {"blocks", unit.block_count},
          {"parameters", unit.parameters},
          {"tensors", unit.tensors},
          {"shard_elements", unit.flat.shard},
          {"shard_bytes", unit.flat.shard * hw::bytes_per_element(scenario.precision.master)},
          {"gathered_bytes", unit.flat.padded() * hw::bytes_per_element(scenario.precision.param)}};
}

OrderedJson counts_json(const program::Program& program) {
  const program::Counts c = program::count(program, program.steps.back());
  OrderedJson collectives = OrderedJson::object();
  for (std::size_t kind = 0; kind < c.collectives.size(); ++kind) {
    const program::CollectiveCount& total = c.collectives[kind];
    if (total.calls > 0)
      collectives[hw::name(static_cast<hw::CollectiveKind>(kind))] = {
          {"calls", total.calls}, {"bytes", total.bytes}, {"wire_bytes", total.wire_bytes.in(byte)}};
  }
  OrderedJson host = OrderedJson::object();
  for (std::size_t work = 1; work < c.host_work.size(); ++work) {
    if (c.host_work[work] > 0) host[program::name(static_cast<hw::HostWork>(work))] = c.host_work[work];
  }
  return {{"ops", program.steps.back().end - program.steps.back().begin},
          {"launches", c.launches},
          {"executed_flops", c.executed.in(flop)},
          {"recomputed_flops", c.recomputed.in(flop)},
          {"dram_bytes", c.dram.in(byte)},
          {"allocations", c.allocations},
          {"host_waits", c.host_waits},
          {"collectives", collectives},
          {"host_work", host}};
}

OrderedJson show_json(const scenarios::Scenario& scenario) {
  OrderedJson units = OrderedJson::array();
  for (const program::Unit& unit : units_of(scenario)) units.push_back(unit_json(scenario, unit));
  const std::int64_t parameters = program::parameters(scenario.model);
  return {{"scenario", scenarios::to_json(scenario)},
          {"parameters", parameters},
          {"active_parameters", program::active_parameters(scenario.model)},
          {"trained_parameters", program::trained_parameters(scenario.model)},
          {"parameters_per_block", program::parameters_per_block(scenario.model)},
          {"matmul_parameters", program::matmul_parameters(scenario.model)},
          {"units", units},
          {"step", counts_json(program::build_program(scenarios::step_spec(scenario), scenario.run.steps))}};
}

/// One past the last of the units from `begin` on that differ in nothing but their names.
std::size_t end_of_alike(const OrderedJson& units, std::size_t begin) {
  std::size_t end = begin + 1;
  const auto alike = [&](const OrderedJson& other) { return other["parameters"] == units[begin]["parameters"] && other["blocks"] == units[begin]["blocks"]; };
  while (end < units.size() && alike(units[end])) ++end;
  return end;
}

std::string show_text(const scenarios::Scenario& scenario) {
  const OrderedJson j = show_json(scenario);
  const auto number = [](const OrderedJson& value) { return count_text(value.get<double>()); };
  const auto size = [](const OrderedJson& value) { return size_text(value.get<double>()); };
  std::string text = scenario.name + "\n" + wrapped(scenario.why, 2) + "\n";
  text += fmt::format("Parameters {}, per block {}\n\nUnits\n", number(j["parameters"]), number(j["parameters_per_block"]));
  Table units({"", "blocks", "parameters", "shard per rank", "gathered"});
  for (std::size_t i = 0; i < j["units"].size();) {
    const OrderedJson& unit = j["units"][i];
    const std::size_t end = end_of_alike(j["units"], i);
    const std::string name = unit["name"].get<std::string>(), last = j["units"][end - 1]["name"].get<std::string>();
    units.add({name == last ? name : fmt::format("{} to {}, each", name, last), number(unit["blocks"]), number(unit["parameters"]), size(unit["shard_bytes"]),
               size(unit["gathered_bytes"])});
    i = end;
  }
  const OrderedJson& step = j["step"];
  Table counts({"", ""});
  counts.add({"kernel launches", number(step["launches"])});
  counts.add({"FLOPs executed", flops_text(step["executed_flops"].get<double>())});
  counts.add({"DRAM traffic", size(step["dram_bytes"])});
  counts.add({"allocations", number(step["allocations"])});
  counts.add({"host waits", number(step["host_waits"])});
  for (const auto& [kind, total] : step["collectives"].items()) counts.add({kind, fmt::format("{} of {}", number(total["calls"]), size(total["bytes"]))});
  return text + units.render() + "\nOne step on one rank\n" + counts.render();
}

std::string program_text(const scenarios::Scenario& scenario) {
  std::ostringstream text;
  program::write_text(program::build_program(scenarios::step_spec(scenario), scenario.run.steps), text);
  return text.str();
}

Exit show(const ShowOptions& options) {
  const Loaded loaded = load(options.choice);
  for (const std::string& warning : loaded.warnings) std::fprintf(stderr, "stepcast: %s\n", warning.c_str());
  if (options.output.json) print(show_json(loaded.scenario).dump(2) + "\n");
  else if (options.resolved) print(scenarios::to_json_text(loaded.scenario) + "\n");
  else if (options.program) print(program_text(loaded.scenario));
  else print(show_text(loaded.scenario));
  return Exit::ok;
}

}  // namespace

void add_show(CLI::App& app, Action& action) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = app.add_subcommand("show", "Show a scenario: its units and counts, every setting as it will run, or the program of one rank");
  options->choice.add_to(*command);
  options->output.add_json(*command);
  auto* resolved = command->add_flag("--resolved", options->resolved, "The whole scenario as it will run; it can be read again");
  command->add_flag("--program", options->program, "The ops of one rank as text, one a line")->excludes(resolved);
  command->footer(
      "Examples:\n  stepcast show 7b-32xa100\n  stepcast show 7b-32xa100 --program | less\n  stepcast show 7b-32xa100 --resolved > full.json\n  stepcast show "
      "--model config.json --cluster dgx-a100-4 "
      "--json");
  command->callback([options, &action] { action = [options] { return show(*options); }; });
}

}  // namespace stepcast::cli
