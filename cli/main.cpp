// The `stepcast` command: parses the command line, runs one subcommand, and turns every error into one line on stderr and an exit code.
// Commands and exit codes: docs/commands.md. Test: tests/golden/cli_test.cpp.
#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/command.hpp"
#include "cli/cuda_program.hpp"

namespace {

using stepcast::cli::Exit;

int code(Exit exit) { return static_cast<int>(exit); }

int parse_failed(CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  std::fprintf(stderr, "stepcast: %s; see stepcast --help\n", error.what());
  return code(Exit::bad_input);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, told in words
  stepcast::cli::hand_over_to_cuda(argc, argv);
  CLI::App app{"Forecasts step time, MFU and memory of sharded transformer training, and says where the time goes.", "stepcast"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("stepcast ") + STEPCAST_VERSION);
  app.footer(
      "Examples:\n  stepcast demo\n  stepcast run 7b-32xa100\n  stepcast run --model config.json --cluster dgx-a100-4 --set /batch/micro_batch=2 --out out\n"
      "Exit codes: 0 done; 1 a check or comparison failed; 2 bad input; 3 the machine failed; 4 the scenario runs out of memory.");
  stepcast::cli::Action action;
  stepcast::cli::add_run(app, action);
  stepcast::cli::add_show(app, action);
  stepcast::cli::add_check(app, action);
  stepcast::cli::add_compare(app, action);
  stepcast::cli::add_sweep(app, action);
  stepcast::cli::add_serve(app, action);
  stepcast::cli::add_tune(app, action);
  stepcast::cli::add_import(app, action);
  stepcast::cli::add_demo(app, action);
  stepcast::cli::add_replay(app, action);
  stepcast::cli::add_validate(app, action);
  stepcast::cli::add_calibrate(app, action);
  stepcast::cli::add_diagnose(app, action);
  stepcast::cli::add_train(app, action);
  stepcast::cli::add_bench(app, action);
  stepcast::cli::add_completion(app, action);
  stepcast::cli::add_manual(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) { return parse_failed(app, error); }
  try {
    return code(action());
  } catch (...) { return code(stepcast::cli::complain_of(std::current_exception())); }
}
