// Completions and the manual page from a small command line whose words are as hostile as words can be. cli/shell.
#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "cli/shell/completion.hpp"
#include "cli/shell/manual.hpp"
#include "support/text.hpp"

using namespace stepcast::cli;

namespace {

using stepcast::test::has;

CommandInfo small() {
  CommandInfo run{"run", "It's a [test]: with \\ signs", "Examples:\n  .dot 'quote'", {}, {}};
  run.options.push_back({{"--kind", "-k"}, "KIND", {"a", "b"}, "which: one", false, false, false});
  run.options.push_back({{"--flag"}, "", {}, "says so", false, false, false});
  run.options.push_back({{"scenario"}, "SCENARIO", {}, "what to run", true, true, false});
  return {"stepcast", "Forecasts", "Exit codes: 0", {}, {run}};
}

}  // namespace

TEST_CASE("the tree holds every option of every command, flags without a value, choices as a list") {
  CLI::App app{"what it does", "stepcast"};
  std::string file, kind;
  std::vector<std::string> many;
  bool flag = false;
  CLI::App* run = app.add_subcommand("run", "runs");
  run->add_option("file", file, "a file")->type_name("FILE")->required();
  run->add_option("--kind,-k", kind, "a kind")->type_name("KIND")->check(CLI::IsMember({"x", "y"}));
  run->add_option("--many", many, "several")->type_name("TEXT");
  run->add_flag("--flag", flag, "a flag");
  const CommandInfo tree = command_tree(app);
  REQUIRE(tree.commands.size() == 1);
  const std::vector<OptionInfo>& options = tree.commands.front().options;
  REQUIRE(options.size() == 5);  // --help first
  CHECK(options[1].positional);
  CHECK(options[1].required);
  CHECK(options[2].names == std::vector<std::string>{"--kind", "-k"});
  CHECK(options[2].value == "KIND");
  CHECK(options[2].choices == std::vector<std::string>{"x", "y"});
  CHECK(options[3].repeated);
  CHECK(options[4].value.empty());
}

TEST_CASE("choices are what stands in braces") {
  CHECK(choices_of("DEVICE:{host,cuda}") == std::vector<std::string>{"host", "cuda"});
  CHECK(choices_of("N:INT in [1 - 9]").empty());
  CHECK(choices_of("}{").empty());
}

TEST_CASE("words are quoted for each shell") {
  CHECK(has(bash_completion(small(), {"7b"}), "run) words='--kind -k --flag 7b'"));
  CHECK(has(bash_completion(small(), {}), "run:-k) words='a b'"));
  CHECK(has(zsh_completion(small(), {}), R"('run:It'\''s a \[test\]\: with \\ signs')"));
  CHECK(has(zsh_completion(small(), {}), R"('*--kind[which\: one]:KIND:(a b)')"));
  CHECK(has(fish_completion(small(), {}), R"(-a run -d 'It'\''s a [test]: with \ signs')"));
  CHECK(has(fish_completion(small(), {}), "-l kind -s k -x -a 'a b' -d 'which: one'"));
}

TEST_CASE("a line of the manual is text even where it looks like a request") {
  const std::string page = manual_page(small(), "1.2");
  CHECK(has(page, ".SS run\nIt's a [test]: with \\e signs.\n"));
  CHECK(has(page, "\n  .dot 'quote'\n"));
  CHECK(has(page, "\\fB\\-\\-kind, \\-k\\fR \\fIKIND\\fR\nwhich: one. One of: a, b.\n"));
  CommandInfo program = small();
  program.description = ".SH pretended\n'br";
  CHECK(has(manual_page(program, "1.2"), "\\&.SH pretended\n\\&'br"));
}
