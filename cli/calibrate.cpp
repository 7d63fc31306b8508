// `stepcast calibrate`: measurements into a fitted hardware profile, with residuals. docs/calibration.md, docs/commands.md; test: tests/golden/calibrate_cli_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "calibration/predictor.hpp"
#include "calibration/read_measurements.hpp"
#include "cli/calibrate/host.hpp"
#include "cli/calibrate/results.hpp"
#include "cli/calibrate/runs.hpp"
#include "cli/command.hpp"
#include "cli/hardware.hpp"
#include "cli/output_folder.hpp"
#include "cli/report/calibration.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/measured_times.hpp"
#include "hw_models/profile_text.hpp"
#include "hw_models/profiles.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {
namespace {

using calibration::Machine;
using calibration::Measurement;
using calibration::MeasurementFile;
using calibration::Owner;
using calibration::Timed;

struct CalibrateOptions {
  std::vector<std::string> files;
  std::string gpu, node, device;
  calibration::FitOptions fit;
  bool fits = false;    // an option of the fit was given
  bool starts = false;  // --starts was
  OutputChoice output;
};

/// "NVIDIA A100-SXM4-80GB" and "a100-sxm4-80gb" are one name.
std::string plain_name(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return c == ' ' ? '-' : static_cast<char>(std::tolower(c)); });
  constexpr std::string_view kMaker = "nvidia-";
  return name.starts_with(kMaker) ? name.substr(kMaker.size()) : name;
}

bool is_of_gpu(const Measurement& row) { return row.timed != Timed::collective; }

/// Which GPU's kernel times are taken: the one that was asked for, the only one, or the one that the profile is named after.
std::string device_of(const std::vector<MeasurementFile>& files, const CalibrateOptions& options, const Machine& machine) {
  std::set<std::string> names;
  for (const MeasurementFile& file : files) {
    for (const Measurement& row : file.rows) {
      if (is_of_gpu(row) && !row.gpu.empty()) names.insert(row.gpu);
    }
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + printable(name, 60);
  const auto named = [&](const std::string& wanted) {
    return std::find_if(names.begin(), names.end(), [&](const std::string& name) { return plain_name(name) == plain_name(wanted); });
  };
  if (!options.device.empty()) {
    if (named(options.device) == names.end()) throw InputError("--device", "", "no measurement of \"" + printable(options.device) + "\"", "measured: " + list);
    return *named(options.device);
  }
  if (!machine.gpu || names.empty()) return "";
  if (names.size() == 1) return *names.begin();
  const std::string own = base_name(machine.gpu->name);
  if (named(own) != names.end()) return *named(own);
  throw InputError("--gpu", "", "the measurements are of several GPUs, and none is called " + own, "choose with --device: " + list);
}

/// The rows that can be fitted; the others are counted by reason.
std::vector<Measurement> usable_rows(const CalibrationReport& report, const Machine& machine, std::map<std::string, std::size_t>& left_out) {
  std::vector<Measurement> rows;
  for (const MeasurementFile& file : report.files) {
    for (const auto& [reason, count] : file.left_out) left_out[reason] += count;
    for (const Measurement& measured : file.rows) {
      const Measurement row = calibration::placed(measured, machine);
      const bool other_gpu = is_of_gpu(row) && !report.device.empty() && row.gpu != report.device;
      const std::string reason = other_gpu ? "of another GPU" : calibration::obstacle(row, machine);
      if (reason.empty()) rows.push_back(row);
      else ++left_out[reason];
    }
  }
  return rows;
}

std::string names_of(const std::vector<MeasurementFile>& files) {
  std::string list;
  for (const MeasurementFile& file : files) {
    const std::string name = file.file.substr(file.file.find_last_of('/') + 1);
    if (list.size() > 300) return list + ", ...";
    list += (list.empty() ? "" : ", ") + printable(name, 80);
  }
  return list;
}

/// The profile with fitted constants in place of its own, and where each came from.
hw::Profile fitted_profile(const hw::Profile& base, const CalibrationReport& report, Owner owner) {
  hw::Profile profile = base;
  profile.name = calibrated_name(base.name);
  for (const calibration::FittedParameter& p : report.fit.parameters) {
    if (p.parameter.owner != owner) continue;
    const std::string state = p.undetermined > calibration::kUndetermined ? ", which do not determine it" : "";
    const std::string source = fmt::format("stepcast calibrate: {} rows of {}{}; before: {:.5g} ({})", report.fit.fitted.size(), names_of(report.files), state,
                                           p.parameter.prior, hw::name(base.constants.at(p.parameter.name).origin));
    profile.constants.at(p.parameter.name) = {p.value, source, hw::Origin::fitted, p.spread};
  }
  return profile;
}

CalibrationReport calibrated(const CalibrateOptions& options) {
  if (options.gpu.empty() && options.node.empty())
    throw InputError("command line", "", "nothing to calibrate", "name a profile to start from with --gpu or --node");
  Machine machine;
  if (!options.gpu.empty()) machine.gpu = hw::gpu_profile(options.gpu);
  if (!options.node.empty()) machine.node = hw::node_profile(options.node);
  CalibrationReport report;
  for (const std::string& file : options.files) report.files.push_back(calibration::read_measurements(file));
  report.device = device_of(report.files, options, machine);
  report.rows = usable_rows(report, machine, report.left_out);
  if (report.rows.empty()) {
    std::string reasons;
    for (const auto& [reason, count] : report.left_out) reasons += fmt::format("{}{} ({})", reasons.empty() ? "" : "; ", reason, count);
    throw InputError("calibrate", "", "no measurement can be used", reasons);
  }
  report.fit = calibration::fit(machine, report.rows, options.fit);
  report.fitted = calibration::residuals(report.fit.machine, report.fit.fitted);
  report.held_out = calibration::residuals(report.fit.machine, report.fit.held_out);
  report.advice = calibration::next_measurement(report.fit);
  if (machine.gpu) report.gpu_profile = hw::gpu_profile_text(fitted_profile(*report.fit.machine.gpu, report, Owner::gpu));
  if (machine.node) report.node_profile = hw::node_profile_text(fitted_profile(*report.fit.machine.node, report, Owner::node));
  return report;
}

/// A name that ends with .json is a file for the one profile; any other is a folder.
void write_profiles(const std::string& gpu, const std::string& node, const std::string& report, const OutputChoice& output) {
  const std::filesystem::path path(output.folder);
  std::vector<std::pair<std::string, std::string>> files;
  if (path.extension() == ".json") {
    if (!gpu.empty() && !node.empty()) throw InputError("--out", "", "there are two profiles to write", "name a folder");
    files = {{path.filename().string(), gpu + node}};
  } else {
    if (!gpu.empty()) files.emplace_back("gpu.json", gpu);
    if (!node.empty()) files.emplace_back("node.json", node);
    files.emplace_back("calibration.json", report);
  }
  std::vector<std::string> names;
  for (const auto& [name, text] : files) names.push_back(name);
  const std::filesystem::path folder = path.extension() != ".json" ? path : path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  OutputFolder out(folder, names, output.force);
  for (const auto& [name, text] : files) out.stage(name, text);
  out.publish();
}

/// Ranks that share the processors of a machine: its profiles are tables of what was measured.
bool is_host(const CalibrateOptions& options) { return !options.gpu.empty() && hw::shared_processors(hw::gpu_profile(options.gpu)) > 0; }

Exit calibrate_host_command(const CalibrateOptions& options) {
  if (options.node.empty()) throw InputError("command line", "", "--gpu " + options.gpu + " needs --node too", "e.g. host-threads");
  if (options.fits || !options.device.empty())
    throw InputError("command line", "", "--hold-out, --starts, --seed and --device have no effect here",
                     "nothing is fitted: what was measured is the profile");
  const HostCalibration calibration = calibrate_host(options.files, options.gpu, options.node);
  const std::string json = to_json(calibration).dump(2) + "\n";
  if (!options.output.folder.empty())
    write_profiles(hw::gpu_profile_text(calibration.profiles.gpu), hw::node_profile_text(calibration.profiles.node), json, options.output);
  print(options.output.json ? json : to_text(calibration));
  return Exit::ok;
}

/// Whole runs, as a table or as results of `train`, stand alone.
bool is_of_runs(const CalibrateOptions& options) {
  const auto& files = options.files;
  const auto tables = std::count_if(files.begin(), files.end(), is_run_table);
  const auto other = std::find_if_not(files.begin(), files.end(), is_result);
  if (tables == 0 && std::none_of(files.begin(), files.end(), is_result)) return false;
  if (tables > 0 ? files.size() == 1 : other == files.end()) return true;
  if (tables == 0) calibration::read_measurements(*other);  // what is wrong with it goes first
  throw InputError("command line", "", tables > 0 ? "a table of runs is calibrated on alone" : "results of runs are calibrated on alone",
                   "calibrate on the measurements first, then on the runs with the profiles that it writes");
}

Exit calibrate_runs_command(const CalibrateOptions& options) {
  if (options.gpu.empty() || options.node.empty())
    throw InputError("command line", "", "whole runs need --gpu and --node", "the profiles of the machine that ran them, e.g. a100-sxm4-80gb and dgx-a100");
  if (is_host(options))
    throw InputError("--gpu", "", "ranks that share processors are calibrated on what bench measures, not on whole runs",
                     "stepcast bench SCENARIO --out host.json");
  if (options.starts || !options.device.empty()) throw InputError("command line", "", "--starts and --device have no effect on whole runs", "leave them out");
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const RunCalibration calibration = is_result(options.files.front()) ? calibrate_results(options.files, options.gpu, options.node, options.fit, threads)
                                                                      : calibrate_runs(options.files.front(), options.gpu, options.node, options.fit, threads);
  const std::string json = to_json(calibration).dump(2) + "\n";
  if (!options.output.folder.empty()) write_profiles(hw::gpu_profile_text(calibration.gpu), hw::node_profile_text(calibration.node), json, options.output);
  print(options.output.json ? json : to_text(calibration));
  return Exit::ok;
}

Exit calibrate_command(const CalibrateOptions& options) {
  if (is_of_runs(options)) return calibrate_runs_command(options);
  if (is_host(options)) return calibrate_host_command(options);
  const CalibrationReport report = calibrated(options);
  if (!options.output.folder.empty()) write_profiles(report.gpu_profile, report.node_profile, calibration_json(report), options.output);
  print(options.output.json ? calibration_json(report) : calibration_text(report));
  return Exit::ok;
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand("calibrate", "Fit a hardware profile to measurements of kernels and collectives, or to whole runs");
  command
      ->add_option("files", options->files,
                   "nccl-tests logs or JSON, measurement files of stepcast bench, traces, CSV tables of kernel times; or whole runs: one table "
                   "(docs/validate.md), or results of train")
      ->required()
      ->type_name("FILES");
  command->add_option("--gpu", options->gpu, "GPU profile to start from (name, or file ending with .json)")->type_name("BASE");
  command->add_option("--node", options->node, "Node profile to start from (name, or file ending with .json)")->type_name("BASE");
  command->add_option("--device", options->device, "GPU whose kernel times are taken, where the files name several")->type_name("NAME");
  command->add_option("--hold-out", options->fit.hold_out, "Share of the operations that is not fitted but judged (default 0.2)")
      ->check(number_between(0.0, 0.9))
      ->type_name("SHARE");
  command->add_option("--starts", options->fit.starts, "Fits from different starts (default 5)")->check(CLI::Range(1, 100))->type_name("N");
  command->add_option("--seed", options->fit.seed, "Seed of the draws of held-out rows and starts")->type_name("N");
  command->add_option("--out", options->output.folder, "Write gpu.json, node.json and calibration.json into this folder, or one profile as this .json file")
      ->type_name("DIR|FILE");
  command->add_flag("--force", options->output.force, "With --out: replace files that are there");
  options->output.add_json(*command);
  command->footer(
      "Examples:\n  stepcast calibrate gemm.csv attention.csv --gpu a100-sxm4-80gb --hold-out 0.5\n"
      "  stepcast calibrate all_reduce.log all_gather.log --node dgx-a100 --out my-cluster\n"
      "  stepcast calibrate runs.csv --gpu a100-sxm4-80gb --node dgx-a100 --out my-cluster\n"
      "  stepcast calibrate a/report.json b/report.json c/report.json --gpu a100-sxm4-80gb --node dgx-a100\n"
      "  stepcast calibrate host.json --gpu host-cpu --node host-threads --out my-machine\n"
      "  stepcast run 7b-32xa100 --set /cluster/node=my-cluster/node.json");
  command->callback([options, command, &action] {
    options->starts = command->count("--starts") > 0;
    options->fits = command->count("--hold-out") + command->count("--starts") + command->count("--seed") > 0;
    action = [options] { return calibrate_command(*options); };
  });
}

}  // namespace stepcast::cli
