// `stepcast completion` and `stepcast manual`: what a shell and man(1) read of the command line. docs/commands.md; test: tests/golden/shell_test.cpp.
#include <memory>

#include "cli/command.hpp"
#include "cli/shell/completion.hpp"
#include "cli/shell/manual.hpp"
#include "hw_models/embedded.hpp"

namespace stepcast::cli {
namespace {

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : scenario_files()) {
    std::string name(file.name);
    if (name.ends_with(".json")) names.push_back(name.substr(0, name.size() - 5));
  }
  return names;
}

Exit complete(const CLI::App& app, const std::string& shell) {
  const CommandInfo tree = command_tree(app);
  const std::vector<std::string> names = scenario_names();
  print(shell == "bash" ? bash_completion(tree, names) : shell == "zsh" ? zsh_completion(tree, names) : fish_completion(tree, names));
  return Exit::ok;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion script of a shell");
  command->add_option("shell", *shell, "The shell that will read it")->type_name("SHELL")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("Examples:\n  source <(stepcast completion bash)\n  stepcast completion fish > ~/.config/fish/completions/stepcast.fish");
  command->callback([&app, shell, &action] { action = [&app, shell] { return complete(app, *shell); }; });
}

void add_manual(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("manual", "Print the manual page, for man(1)");
  command->footer("Examples:\n  stepcast manual > stepcast.1 && man ./stepcast.1");
  command->callback([&app, &action] {
    action = [&app] {
      print(manual_page(command_tree(app), STEPCAST_VERSION));
      return Exit::ok;
    };
  });
}

}  // namespace stepcast::cli
