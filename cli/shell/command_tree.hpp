// The command line as plain data: what completions and the manual page are written from, so that they can't differ from it. Test: tests/unit/shell_test.cpp.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace stepcast::cli {

struct OptionInfo {
  std::vector<std::string> names;    // "--json", "-h"; of a positional its name alone
  std::string value;                 // what follows it, e.g. "FILE"; empty: a flag
  std::vector<std::string> choices;  // the values there are, if there are only some
  std::string description;
  bool positional = false, required = false, repeated = false;
};

struct CommandInfo {
  std::string name, description, footer;
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;
};

/// Everything that `app` and its subcommands take, in the order in which --help shows it.
CommandInfo command_tree(const CLI::App& app);

/// The values that a type's name lists: "DEVICE:{host,cuda}" has two; none without braces.
std::vector<std::string> choices_of(const std::string& type_name);

}  // namespace stepcast::cli
