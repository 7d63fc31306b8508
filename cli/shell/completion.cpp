// See completion.hpp. The scripts list what each command takes; which word is being completed is found out by the shell.
#include "cli/shell/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace stepcast::cli {
namespace {

bool takes_scenario(const CommandInfo& command) {
  return std::any_of(command.options.begin(), command.options.end(), [](const OptionInfo& option) { return option.positional && option.value == "SCENARIO"; });
}

std::vector<std::string> names_of(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands) names.push_back(command.name);
  return names;
}

/// All that can begin a word of the command: its options, and the scenarios by name.
std::vector<std::string> words_of(const CommandInfo& command, const std::vector<std::string>& scenarios) {
  std::vector<std::string> words;
  for (const OptionInfo& option : command.options) {
    if (!option.positional) words.insert(words.end(), option.names.begin(), option.names.end());
    else words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  if (takes_scenario(command)) words.insert(words.end(), scenarios.begin(), scenarios.end());
  return words;
}

/// As one word of a shell, whatever it holds.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// A description inside a quoted specification of zsh: brackets and colons would end it.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_value(const OptionInfo& option) {
  const std::string name = zsh_text(option.value);
  if (!option.choices.empty()) return fmt::format(":{}:({})", name, fmt::join(option.choices, " "));
  if (option.value == "SCENARIO") return fmt::format(":{}:_stepcast_scenarios", name);
  return fmt::format(":{}:_files", name);
}

std::string zsh_option(const OptionInfo& option) {
  if (option.positional) return quoted((option.repeated ? "*" : "") + zsh_value(option));
  std::string specs;
  for (const std::string& name : option.names) {
    const std::string spec = fmt::format("*{}[{}]{}", name, zsh_text(option.description), option.value.empty() ? "" : zsh_value(option));
    specs += (specs.empty() ? "" : " \\\n        ") + quoted(spec);
  }
  return specs;
}

std::string fish_option(const OptionInfo& option, const std::string& condition) {
  std::string line = "complete -c stepcast" + condition;
  if (option.positional) return option.choices.empty() ? "" : line + " -a " + quoted(fmt::format("{}", fmt::join(option.choices, " "))) + "\n";
  for (const std::string& name : option.names) line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty()) line += option.choices.empty() ? " -r -F" : " -x -a " + quoted(fmt::format("{}", fmt::join(option.choices, " ")));
  return line + " -d " + quoted(option.description) + "\n";
}

}  // namespace

std::string bash_completion(const CommandInfo& program, const std::vector<std::string>& scenarios) {
  std::string cases, values;
  for (const CommandInfo& command : program.commands) {
    cases += fmt::format("    {}) words={} ;;\n", command.name, quoted(fmt::format("{}", fmt::join(words_of(command, scenarios), " "))));
    for (const OptionInfo& option : command.options) {
      if (option.positional || option.value.empty()) continue;
      for (const std::string& name : option.names)
        values += fmt::format("    {}:{}) words={} ;;\n", command.name, name, quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    }
  }
  return fmt::format(R"(# bash completion for stepcast, written by `stepcast completion bash`.
_stepcast() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command=${{COMP_WORDS[1]}} words=
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W {} -- "$current")
    return
  fi
  case $command in
{}    *) return ;;
  esac
  case $command:$before in
{}  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _stepcast stepcast
)",
                     quoted(fmt::format("{} --help --version", fmt::join(names_of(program.commands), " "))), cases, values);
}

std::string zsh_completion(const CommandInfo& program, const std::vector<std::string>& scenarios) {
  std::string names, cases;
  for (const CommandInfo& command : program.commands) {
    names += "    " + quoted(command.name + ":" + zsh_text(command.description)) + "\n";
    cases += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionInfo& option : command.options) cases += " \\\n        " + zsh_option(option);
    cases += "\n      ;;\n";
  }
  return fmt::format(R"(#compdef stepcast
# zsh completion for stepcast, written by `stepcast completion zsh`.
_stepcast_scenarios() {{
  _alternative 'names:scenario:({})' 'files:file:_files'
}}
_stepcast() {{
  local -a commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
_stepcast "$@"
)",
                     fmt::join(scenarios, " "), names, cases);
}

std::string fish_completion(const CommandInfo& program, const std::vector<std::string>& scenarios) {
  std::string text = "# fish completion for stepcast, written by `stepcast completion fish`.\n";
  for (const CommandInfo& command : program.commands) {
    text += fmt::format("complete -c stepcast -n __fish_use_subcommand -f -a {} -d {}\n", command.name, quoted(command.description));
    const std::string condition = " -n " + quoted("__fish_seen_subcommand_from " + command.name);
    if (takes_scenario(command)) text += "complete -c stepcast" + condition + " -a " + quoted(fmt::format("{}", fmt::join(scenarios, " "))) + " -d scenario\n";
    for (const OptionInfo& option : command.options) text += fish_option(option, condition);
  }
  return text;
}

}  // namespace stepcast::cli
