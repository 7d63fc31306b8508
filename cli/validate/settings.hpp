// Settings of a scenario while they are collected from a table's row and from facts: each by JSON pointer, and the better known wins. Test: tests/unit/row_scenario_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "calibration/runs.hpp"

namespace stepcast::cli {

/// How well a setting is known. `loose`: the row's word for it has several readings.
enum class Weight : std::uint8_t { fallback, loose, fact, inferred, stated };

inline Weight weight_of(const calibration::Cell& cell) {
  switch (cell.given) {
    case calibration::Given::stated: return Weight::stated;
    case calibration::Given::inferred: return Weight::inferred;
    case calibration::Given::fact: break;
  }
  return Weight::fact;
}

class Settings {
 public:
  void put(const std::string& pointer, nlohmann::json value, Weight weight) {
    auto [at, fresh] = settings_.try_emplace(pointer, value, weight);
    if (!fresh && weight >= at->second.second) at->second = {std::move(value), weight};
  }
  [[nodiscard]] const nlohmann::json* find(const std::string& pointer) const {
    const auto at = settings_.find(pointer);
    return at == settings_.end() ? nullptr : &at->second.first;
  }
  /// The scenario that they make.
  [[nodiscard]] nlohmann::json document() const {
    nlohmann::json document = nlohmann::json::object();
    for (const auto& [pointer, setting] : settings_) document[nlohmann::json::json_pointer(pointer)] = setting.first;
    return document;
  }

 private:
  std::map<std::string, std::pair<nlohmann::json, Weight>> settings_;
};

}  // namespace stepcast::cli
