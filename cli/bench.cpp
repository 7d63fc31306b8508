// `stepcast bench`: measures the operations that programs are made of, and writes the measurement file that `calibrate` reads. docs/measurement_file.md,
// docs/real_backend.md; test: tests/golden/train_cli_test.cpp.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/bench/gpu_watch.hpp"
#include "cli/bench/rows.hpp"
#include "cli/command.hpp"
#include "cli/load.hpp"
#include "cli/output_folder.hpp"
#include "cli/progress.hpp"
#include "cli/train/real_device.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/ordered_json.hpp"
#include "program/build.hpp"
#include "scenarios/names.hpp"

namespace stepcast::cli {
namespace {

struct BenchOptions {
  ScenarioChoice choice;
  std::string device = "host", dtype = "fp32", out;
  std::vector<std::int32_t> ranks;  // none: two, where there are as many
  double seconds = 0.5;
  bool force = false;
};

hw::Dtype dtype_of(const std::string& name) {
  for (const hw::Dtype dtype : {hw::Dtype::fp64, hw::Dtype::fp32, hw::Dtype::bf16}) {
    if (name == hw::name(dtype)) return dtype;
  }
  throw InputError("command line", "", "--dtype: \"" + name + "\" is unknown", "one of fp64, fp32, bf16");
}

/// Larger than the last-level caches of GPUs so far; the head start lasts for about 100 us.
real::bench::Target target_of(const RealDevice& device) {
  if (device.name == "host") return real::bench::host_target();
  return {.make_driver = device.make_driver, .own_clock = true, .outgrows = std::int64_t{128} << 20, .head_start = std::int64_t{256} << 20};
}

/// Of the sweep's collectives. One GPU has none.
std::vector<std::int32_t> ranks_of(const BenchOptions& options, const RealDevice& device) {
  if (!options.ranks.empty()) return options.ranks;
  return device.most_ranks > 1 ? std::vector<std::int32_t>{2} : std::vector<std::int32_t>{};
}

/// Of a scenario exactly what a step runs; otherwise the sweep.
BenchPlan plan_of(const BenchOptions& options, const RealDevice& device) {
  BenchPlan plan(target_of(device));
  add_host_calls(plan);
  if (options.choice.scenario.empty() && options.choice.model.empty()) {
    add_sweep(dtype_of(options.dtype), ranks_of(options, device), plan);
    return plan;
  }
  ScenarioChoice choice = options.choice;
  choice.changes.sets.emplace_back("/kernels/set=native");
  const Loaded loaded = load(choice);
  add_program(program::build_program(scenarios::step_spec(loaded.scenario), 1), scenarios::ranks(loaded.scenario), plan);
  return plan;
}

OrderedJson measured(const BenchPlan& plan, const RealDevice& device, real::bench::Effort effort) {
  std::optional<GpuWatch> watch;
  if (device.monitor) {
    watch.emplace(device.monitor(plan.ranks()));
    effort.between = [&watch] { watch->between(); };
  }
  const auto done = progress("bench", plan.points().size());
  OrderedJson rows = OrderedJson::array();
  for (const BenchPoint& point : plan.points()) {
    rows.push_back(timed(point.row, point.measure(effort)));
    if (done) done(rows.size());
  }
  if (device.name == "host") return measurement_file(std::move(rows));
  OrderedJson machine = device.machine;
  if (watch) watch->add_to(machine);
  return measurement_file(std::move(rows), std::move(machine));
}

Exit run(const BenchOptions& options) {
  const RealDevice device = real_device(options.device, 1);
  const BenchPlan plan = plan_of(options, device);
  static_cast<void>(real_device(options.device, plan.ranks()));  // refuses more than there are before anything is measured
  std::optional<OutputFile> out;
  if (!options.out.empty()) out.emplace("--out", options.out, options.force);
  real::bench::Effort effort;
  effort.seconds = options.seconds;
  const std::string text = measured(plan, device, effort).dump(1) + "\n";
  if (out) out->write(text);
  else print(text);
  return Exit::ok;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchOptions>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("bench", "Measure kernels, launches and collectives of this machine");
  options->choice.add_to(*command);
  command->add_option("--device", options->device, "What to measure: host, the processors of this machine, or cuda, its GPUs")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"host", "cuda"}));
  command->add_option("--dtype", options->dtype, "Type of the sweep: fp32, fp64 or bf16")->type_name("TYPE");
  command->add_option("--ranks", options->ranks, "Ranks of the sweep's collectives, one or more (2)")->type_name("N")->check(CLI::Range(2, 64));
  command->add_option("--seconds", options->seconds, "Longest time for one point")->type_name("SECONDS")->check(number_between(0.01, 600.0));
  command->add_option("--out", options->out, "Write the measurement file here instead of to standard output")->type_name("FILE");
  command->add_flag("--force", options->force, "With --out: replace a file that is there");
  command->footer("Examples:\n  stepcast bench --out host.json\n  stepcast bench tiny.json --out tiny-shapes.json\n  stepcast calibrate host.json --help");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace stepcast::cli
