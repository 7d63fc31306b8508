// See host.hpp.
#include "cli/calibrate/host.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "calibration/read_measurements.hpp"
#include "cli/report/table.hpp"
#include "hw_models/profile_rules.hpp"
#include "hw_models/profile_text.hpp"
#include "hw_models/profiles.hpp"

namespace stepcast::cli {
namespace {

constexpr const char* kMeasured = ", measured";  // ends the name of a profile that is made here

std::string own_name(const std::string& base) { return base.substr(0, base.find(kMeasured)) + kMeasured; }

void add_constants(const hw::Profile& profile, std::span<const hw::ConstantRule> rules, Table& table) {
  for (const hw::ConstantRule& rule : rules) {
    const auto found = profile.constants.find(rule.name);
    if (found == profile.constants.end() || found->second.origin != hw::Origin::measured) continue;
    const double value = found->second.value;
    table.add({std::string(rule.name), rule.dimension ? si_text(value, *rule.dimension) : fmt::format("{:g}", value)});
  }
}

}  // namespace

HostCalibration calibrate_host(const std::vector<std::string>& files, const std::string& gpu, const std::string& node) {
  HostCalibration result;
  for (const std::string& file : files) result.files.push_back(calibration::read_measurements(file));
  result.profiles = calibration::host_profiles({hw::gpu_profile(gpu), hw::node_profile(node)}, result.files);
  result.profiles.gpu.name = own_name(result.profiles.gpu.name);
  result.profiles.node.name = own_name(result.profiles.node.name);
  return result;
}

std::string to_text(const HostCalibration& calibration) {
  std::string text = fmt::format("{} kernels and {} collectives stand in the profiles as they were measured.\n", calibration.profiles.gpu.kernels.size(),
                                 calibration.profiles.node.collectives.size());
  for (const calibration::MeasurementFile& file : calibration.files) {
    for (const auto& [reason, count] : file.left_out) text += fmt::format("Left out: {} rows of {}: {}\n", count, file.file, reason);
  }
  Table table({"constant", "measured"});
  add_constants(calibration.profiles.gpu, hw::gpu_rules(), table);
  add_constants(calibration.profiles.node, hw::node_rules(), table);
  return text + "\n" + table.render();
}

nlohmann::ordered_json to_json(const HostCalibration& calibration) {
  using Json = nlohmann::ordered_json;
  Json json = {{"schema", "stepcast.calibration/1"}, {"files", Json::array()}};
  for (const calibration::MeasurementFile& file : calibration.files)
    json["files"].push_back({{"file", file.file}, {"format", file.format}, {"rows", file.rows.size()}, {"left_out", file.left_out}});
  json["kernels"] = calibration.profiles.gpu.kernels.size();
  json["collectives"] = calibration.profiles.node.collectives.size();
  json["profiles"] = {{"gpu", Json::parse(hw::gpu_profile_text(calibration.profiles.gpu))},
                      {"node", Json::parse(hw::node_profile_text(calibration.profiles.node))}};
  return json;
}

}  // namespace stepcast::cli
