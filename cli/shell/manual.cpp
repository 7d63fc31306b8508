// See manual.hpp. Macros: man(7).
#include "cli/shell/manual.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stepcast::cli {
namespace {

/// A line of text: backslashes and dashes as themselves, and no line that begins as a request does.
std::string roff_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool begins = result.empty() || result.back() == '\n';
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') result += "\\e";
    else if (c == '-') result += "\\-";
    else result += c;
  }
  return result;
}

std::string option_text(const OptionInfo& option) {
  const std::string names = option.positional ? "\\fI" + roff_escaped(option.value.empty() ? option.names.front() : option.value) + "\\fR"
                                              : "\\fB" + roff_escaped(fmt::format("{}", fmt::join(option.names, ", "))) + "\\fR";
  const std::string value = option.positional || option.value.empty() ? "" : " \\fI" + roff_escaped(option.value) + "\\fR";
  const std::string choices = option.choices.empty() ? "" : fmt::format(" One of: {}.", fmt::join(option.choices, ", "));
  return ".TP\n" + names + value + "\n" + roff_escaped(option.description + (choices.empty() ? "" : "." + choices)) + "\n";
}

/// "Examples:\n  one\n  two": a paragraph, and lines as they are.
std::string footer_text(const std::string& footer) { return footer.empty() ? "" : ".PP\n.nf\n" + roff_escaped(footer) + "\n.fi\n"; }

std::string command_text(const CommandInfo& command) {
  std::string text = ".SS " + roff_escaped(command.name) + "\n" + roff_escaped(command.description) + ".\n";
  for (const OptionInfo& option : command.options) text += option_text(option);
  return text + footer_text(command.footer);
}

}  // namespace

std::string manual_page(const CommandInfo& program, const std::string& version) {
  std::string text =
      fmt::format(".TH STEPCAST 1 \"\" \"stepcast {}\" \"User Commands\"\n.SH NAME\nstepcast \\- forecasts of sharded transformer training\n", version);
  text += ".SH SYNOPSIS\n\\fBstepcast\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH DESCRIPTION\n" + roff_escaped(program.description) + "\n.SH COMMANDS\n";
  for (const CommandInfo& command : program.commands) text += command_text(command);
  return text + ".SH NOTES\n" + footer_text(program.footer);
}

}  // namespace stepcast::cli
