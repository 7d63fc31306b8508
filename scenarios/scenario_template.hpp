// A scenario that is read once and then varied: its layers are kept, and each variant is merged and read from them. Test: tests/unit/scenario_template_test.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "scenarios/scenario.hpp"

namespace stepcast::scenarios {

struct Layers;

class ScenarioTemplate {
 public:
  /// As read_scenario and read_scenario_text, whose result `with` gives, without reading files again. Throws InputError.
  explicit ScenarioTemplate(const std::string& path_or_name, Sets sets = {});
  ScenarioTemplate(std::string_view text, const std::string& file, Sets sets = {});
  [[nodiscard]] Scenario with(Sets sets) const;

 private:
  std::shared_ptr<const Layers> layers_;
};

}  // namespace stepcast::scenarios
