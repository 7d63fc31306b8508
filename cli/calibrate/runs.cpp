// See runs.hpp.
#include "cli/calibrate/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "calibration/draws.hpp"
#include "cli/calibrate/results.hpp"
#include "cli/progress.hpp"
#include "cli/validate/parallel.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profile_rules.hpp"
#include "hw_models/profiles.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {
namespace {

using calibration::Run;

constexpr std::size_t kLeastFitted = 3, kLongestHeader = 16384;
constexpr std::array<Factor, 4> kFactors{Factor::clock, Factor::network, Factor::latency, Factor::host};

/// What a fit of these rows needs again and again.
struct Rows {
  std::vector<std::string> ids;
  std::function<JudgedRow(std::size_t, const MachineFactors&)> judge;  // on the machine's profiles
  unsigned threads = 1;

  [[nodiscard]] std::vector<JudgedRow> judged(const std::vector<std::size_t>& which, const MachineFactors& factors) const {
    std::vector<JudgedRow> rows(which.size());
    for_each_index(which.size(), threads, [&](std::size_t i) { rows[i] = judge(which[i], factors); });
    return rows;
  }
};

/// The runs that can be fitted; the others by reason.
std::vector<std::size_t> usable(const std::vector<JudgedRow>& rows, RunCalibration& result) {
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].error) which.push_back(i);
    else result.left_out[rows[i].skipped.empty() ? "no speed was measured" : rows[i].skipped].push_back(rows[i].id);
  }
  return which;
}

/// The share of the runs that the seed puts last is held out.
std::vector<bool> held_out_of(const std::vector<std::size_t>& which, const Rows& rows, const calibration::FitOptions& fit) {
  std::vector<std::size_t> order(which.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto draw = [&](std::size_t i) { return calibration::uniform(fit.seed, rows.ids[which[i]], 0); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return draw(a) > draw(b); });
  std::vector<bool> held(which.size());
  const auto count = static_cast<std::size_t>(std::floor(fit.hold_out * static_cast<double>(which.size())));
  for (std::size_t i = 0; i < count; ++i) held[order[i]] = true;
  return held;
}

bool determined(const FittedFactor& factor) { return factor.variance_left <= calibration::kUndetermined; }

/// Those that the runs determine; 1 for the others.
MachineFactors used(const std::array<FittedFactor, 4>& factors) {
  const auto value = [&](std::size_t i) { return determined(factors[i]) ? factors[i].value : 1.0; };
  return {value(0), value(1), value(2), value(3)};
}

/// The constants that factors move, multiplied, with their source.
hw::Profile fitted(hw::Profile profile, std::span<const hw::ConstantRule> rules, bool of_gpu, const RunCalibration& result, std::size_t count) {
  for (auto& [name, constant] : profile.constants) {
    const std::optional<Factor> factor = factor_of(name, of_gpu);
    if (!factor || constant.value == 0) continue;
    const FittedFactor& f = result.factors[static_cast<std::size_t>(*factor)];
    if (!determined(f)) continue;
    const hw::ConstantRule& rule = *hw::find_rule(rules, name);
    const std::string source = fmt::format("stepcast calibrate: {} runs of {}, {} x {:.4g}; before: {:.5g} ({})", count,
                                           printable(result.file.substr(result.file.find_last_of('/') + 1), 80),
                                           kFactorNames[static_cast<std::size_t>(*factor)], f.value, constant.value, hw::name(constant.origin));
    constant = {std::clamp(constant.value * f.value, rule.min, rule.max), source, hw::Origin::fitted, f.spread};
  }
  profile.name = calibrated_name(profile.name);
  return profile;
}

RunCalibration of_rows(const std::string& file, const Rows& rows, const calibration::FitOptions& fit) {
  RunCalibration result;
  result.file = file;
  std::vector<std::size_t> all(rows.ids.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::vector<JudgedRow> shipped = rows.judged(all, {});
  const std::vector<std::size_t> which = usable(shipped, result);
  const std::vector<bool> held = held_out_of(which, rows, fit);
  std::vector<std::size_t> to_fit;
  for (std::size_t i = 0; i < which.size(); ++i) {
    if (!held[i]) to_fit.push_back(which[i]);
  }
  if (to_fit.size() < kLeastFitted) {
    const std::string reason =
        result.left_out.empty() ? "" : fmt::format("; left out, e.g. {}: {}", result.left_out.begin()->second.front(), result.left_out.begin()->first);
    throw InputError(file, "", fmt::format("{} runs can be fitted, {} are needed", to_fit.size(), kLeastFitted), "--hold-out 0 fits all" + reason);
  }
  const auto tick = open_progress("calibrate");
  std::size_t simulations = 0;
  result.factors = fit_factors([&](const MachineFactors& factors) {
    std::vector<double> errors;
    for (const JudgedRow& row : rows.judged(to_fit, factors)) errors.push_back(row.error.value_or(0));
    if (tick) tick(simulations += to_fit.size());
    return errors;
  });
  const std::vector<JudgedRow> after = rows.judged(which, used(result.factors));
  for (std::size_t i = 0; i < which.size(); ++i)
    result.runs.push_back({after[i].id, held[i], *after[i].measured.tokens_per_s_per_gpu, *shipped[which[i]].error, after[i].error.value_or(0)});
  return result;
}

/// The profiles with what the runs determine.
RunCalibration with_profiles(RunCalibration result, const std::string& gpu, const std::string& node) {
  const auto count = static_cast<std::size_t>(std::count_if(result.runs.begin(), result.runs.end(), [](const CalibratedRun& run) { return !run.held_out; }));
  result.gpu = fitted(hw::gpu_profile(gpu), hw::gpu_rules(), true, result, count);
  result.node = fitted(hw::node_profile(node), hw::node_rules(), false, result, count);
  return result;
}

}  // namespace

std::vector<std::string> constants_of(std::size_t factor, const hw::Profile& gpu, const hw::Profile& node) {
  std::vector<std::string> names;
  const auto add = [&](const hw::Profile& profile, bool of_gpu) {
    for (const auto& [name, constant] : profile.constants) {
      if (constant.value != 0 && factor_of(name, of_gpu) == kFactors[factor]) names.push_back(name);
    }
  };
  add(gpu, true);
  add(node, false);
  return names;
}

bool is_run_table(const std::string& path) {
  const std::string text = beginning_of(path, kLongestHeader);
  const std::string header = "," + text.substr(0, text.find_first_of("\r\n")) + ",";
  const auto column = [&](const std::string& name) {
    return header.find("," + name + ",") != std::string::npos || header.find(",\"" + name + "\",") != std::string::npos;
  };
  return column("n_gpus") && column("sharding") && column("micro_batch");
}

RunCalibration calibrate_runs(const std::string& file, const std::string& gpu, const std::string& node, const calibration::FitOptions& fit, unsigned threads) {
  const calibration::Sources sources;
  const std::vector<Run> runs = calibration::read_runs_file(file).runs;
  Rows rows{
      {}, [&](std::size_t i, const MachineFactors& factors) { return judge_row(runs[i], sources, {.factors = factors, .gpu = gpu, .node = node}); }, threads};
  for (const Run& run : runs) rows.ids.push_back(run.id);
  return with_profiles(of_rows(file, rows, fit), gpu, node);
}

RunCalibration calibrate_results(const std::vector<std::string>& files, const std::string& gpu, const std::string& node, const calibration::FitOptions& fit,
                                 unsigned threads) {
  std::vector<RunResult> results;
  for (const std::string& file : files) results.push_back(read_result(file, gpu, node));
  Rows rows{{}, [&](std::size_t i, const MachineFactors& factors) { return judge_result(results[i], factors); }, threads};
  for (const RunResult& result : results) rows.ids.push_back(result.file);
  const std::string more = files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "";
  return with_profiles(of_rows(files.front() + more, rows, fit), gpu, node);
}

}  // namespace stepcast::cli
