// What the subcommands share: how they register, the options that several of them have, and how they end. Test: tests/golden/cli_test.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::cli {

/// Exit codes of all commands (docs/commands.md).
enum class Exit : int { ok = 0, check_failed = 1, bad_input = 2, failure = 3, out_of_memory = 4 };

/// One line about an error on standard error, and the exit code that it ends the program with.
Exit complain_of(const std::exception_ptr& error);

/// Set by the chosen subcommand's callback and run by main after parsing.
using Action = std::function<Exit()>;

/// A number from `least` to `most`; unlike CLI::Range it lets no NaN pass.
CLI::Validator number_between(double least, double most);

/// --set, --seed: changes to a scenario after it is read.
struct ScenarioChanges {
  std::vector<std::string> sets;  // "/json/pointer=value"
  std::optional<std::uint64_t> seed;
  void add_to(CLI::App& command);
  /// All changes as `--set` texts, in order.
  [[nodiscard]] std::vector<std::string> all() const;
};

/// A scenario by path or name; or a Hugging Face config.json, or configuration files of a training framework, with a cluster name instead.
struct ScenarioChoice {
  std::string scenario, model, cluster;
  std::vector<std::string> configs;
  ScenarioChanges changes;
  void add_to(CLI::App& command);
};

/// --json, --out, --force.
struct OutputChoice {
  bool json = false, force = false;
  std::string folder;
  void add_json(CLI::App& command);
  void add_folder(CLI::App& command);
};

void add_run(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_demo(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_diagnose(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_serve(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_manual(CLI::App& app, Action& action);

/// Writes to standard output and flushes; throws std::system_error if it can't (a full disk, a closed pipe).
void print(const std::string& text);

}  // namespace stepcast::cli
