// See command_tree.hpp.
#include "cli/shell/command_tree.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace stepcast::cli {
namespace {

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  if (names.empty()) names.push_back(option.get_name(true));
  return names;
}

/// "DEVICE:{host}" and "N:INT in [1 - 9]" without what follows the colon.
std::string value_name(const std::string& type_name) { return type_name.substr(0, type_name.find(':')); }

OptionInfo option_info(const CLI::Option& option) {
  OptionInfo info;
  info.names = names_of(option);
  info.positional = option.get_positional();
  const bool flag = !info.positional && option.get_items_expected_max() == 0;
  if (!flag) {
    info.value = value_name(option.get_type_name());
    info.choices = choices_of(option.get_type_name());
  }
  info.description = option.get_description();
  info.required = option.get_required();
  info.repeated = option.get_items_expected_max() > 1;
  return info;
}

}  // namespace

std::vector<std::string> choices_of(const std::string& type_name) {
  std::vector<std::string> choices;
  const std::size_t begin = type_name.find('{'), end = type_name.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return choices;
  for (std::size_t at = begin + 1; at < end;) {
    const std::size_t comma = std::min(type_name.find(',', at), end);
    choices.push_back(type_name.substr(at, comma - at));
    at = comma + 1;
  }
  return choices;
}

CommandInfo command_tree(const CLI::App& app) {
  CommandInfo info{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options({})) info.options.push_back(option_info(*option));
  for (const CLI::App* command : app.get_subcommands({})) info.commands.push_back(command_tree(*command));
  return info;
}

}  // namespace stepcast::cli
