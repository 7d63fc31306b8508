// See residuals.hpp.
#include "calibration/residuals.hpp"

#include <cmath>
#include <map>

#include "calibration/describe.hpp"

namespace stepcast::calibration {

std::vector<ResidualGroup> residuals(const Machine& machine, const std::vector<const Measurement*>& rows) {
  struct Decade {
    std::string name;
    std::vector<double> errors;
  };
  const Eigen::VectorXd logs = log_errors(machine, rows);
  std::map<std::string, std::map<int, Decade>> groups;
  std::map<std::string, std::vector<double>> whole;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double error = std::expm1(logs[static_cast<Eigen::Index>(i)]), size = size_of(*rows[i]);
    const std::string group = group_of(*rows[i]);
    whole[group].push_back(error);
    if (size <= 0) continue;
    Decade& decade = groups[group][static_cast<int>(std::floor(std::log10(size) + 1e-9))];
    decade.name = decade_of(*rows[i]);
    decade.errors.push_back(error);
  }
  std::vector<ResidualGroup> result;
  for (const auto& [group, errors] : whole) {
    result.push_back({group, "", summarize(errors)});
    for (const auto& [power, decade] : groups[group]) result.push_back({group, decade.name, summarize(decade.errors)});
  }
  return result;
}

}  // namespace stepcast::calibration
