// A scenario under the controls of the page: which settings hold together, which give way, and why an option can't be had. docs/serve.md, "Settings that contradict each
// other"; test: tests/unit/serve_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/serve/controls.hpp"
#include "cli/serve/request.hpp"
#include "scenarios/scenario_template.hpp"

namespace stepcast::cli {

/// Settings that hold together, as --set texts; and which of those asked for, or of the scenario's own, were taken back for a leading one.
struct Settled {
  scenarios::Scenario scenario;
  std::vector<std::string> sets, taken_back;
};

class LiveScenario {
 public:
  /// Throws InputError if the base can't be forecast as it is.
  explicit LiveScenario(scenarios::ScenarioTemplate base);

  /// All settings if they hold together. If not, and one of them leads (a framework, say): those that contradict it are taken back, the oldest first.
  /// Throws InputError if the newest can't hold.
  [[nodiscard]] Settled settle(const std::vector<Setting>& settings) const;
  /// [{pointer, label, group, kind, value, base, options: [{value, refused}]}]: `refused` says why an option can't be chosen now.
  [[nodiscard]] nlohmann::ordered_json controls(const Settled& settled, const std::vector<Setting>& settings) const;

 private:
  [[nodiscard]] std::optional<std::string> why_not(const Control& control, const nlohmann::ordered_json& option, const nlohmann::ordered_json& now,
                                                   const Settled& settled, const std::vector<Setting>& settings) const;

  scenarios::ScenarioTemplate base_;
  nlohmann::ordered_json resolved_;  // of the base
};

}  // namespace stepcast::cli
