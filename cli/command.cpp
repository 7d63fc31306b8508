// The options that several subcommands have in common. docs/commands.md; test: tests/golden/cli_test.cpp.
#include "cli/command.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>

#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

Exit complain(const char* what, Exit exit) {
  std::fprintf(stderr, "stepcast: %s\n", what);
  return exit;
}

}  // namespace

CLI::Validator number_between(double least, double most) {
  return {[least, most](std::string& text) {
            double number = 0;
            if (CLI::detail::lexical_cast(text, number) && number >= least && number <= most) return std::string();
            return "Value " + text + fmt::format(" is not a number from {:g} to {:g}", least, most);
          },
          fmt::format("FLOAT in [{:g} - {:g}]", least, most)};
}

Exit complain_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const InputError& wrong) { return complain(wrong.what(), Exit::bad_input); } catch (const std::bad_alloc&) {
    return complain("this machine has not enough memory for the run", Exit::failure);
  } catch (const std::exception& failed) { return complain(failed.what(), Exit::failure); }
}

void ScenarioChanges::add_to(CLI::App& command) {
  command.add_option("--set", sets, "Change one value, e.g. --set /batch/micro_batch=4 (may be repeated)")
      ->type_name("/POINTER=VALUE")
      ->allow_extra_args(false);
  command.add_option("--seed", seed, "Seed of all random draws (/run/seed)")->type_name("N");
}

std::vector<std::string> ScenarioChanges::all() const {
  std::vector<std::string> changes = sets;
  if (seed) changes.push_back("/run/seed=" + std::to_string(*seed));
  return changes;
}

void ScenarioChoice::add_to(CLI::App& command) {
  auto* file = command.add_option("scenario", scenario, "Scenario file, or the name of a built-in scenario")->type_name("SCENARIO");
  auto* machines = command.add_option("--cluster", cluster, "Cluster for --model and --config: node type and number of nodes, e.g. dgx-a100-4")
                       ->type_name("NAME-N")
                       ->excludes(file);
  command.add_option("--model", model, "Hugging Face config.json or a built-in model's name, instead of a scenario")
      ->type_name("CONFIG.JSON")
      ->excludes(file)
      ->needs(machines);
  command.add_option("--config", configs, "Configuration of accelerate, torchtitan, DeepSpeed, llm-foundry or torchtune (may be repeated)")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->excludes(file)
      ->needs(machines);
  changes.add_to(command);
}

void OutputChoice::add_json(CLI::App& command) { command.add_flag("--json", json, "One JSON object on standard output instead of text"); }

void OutputChoice::add_folder(CLI::App& command) {
  command.add_option("--out", folder, "Write report.json, report.txt, report.html and a run's trace.json.gz into this folder")->type_name("DIR");
  command.add_flag("--force", force, "With --out: replace files that stepcast did not write");
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  throw std::system_error(errno, std::generic_category(), "can't write to standard output");
}

}  // namespace stepcast::cli
