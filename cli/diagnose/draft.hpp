// A scenario in the making: each key with its value, how sure it is, and what it rests on. docs/diagnose.md, "From a trace to a scenario".
// Test: tests/unit/inference_test.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::cli {

/// seen: the file shows it; given: by the user; guessed: likely, by what usually goes with what is seen; missing: needed, and not shown.
enum class Certainty : std::uint8_t { seen, given, guessed, missing };
const char* name(Certainty certainty);

struct InferredKey {
  std::string pointer;  // of the scenario
  nlohmann::ordered_json value;
  Certainty certainty = Certainty::seen;
  std::string because;
  bool settable = true;  // false: no setting of a scenario is meant, but something that the simulator has not
};

class ScenarioDraft {
 public:
  void seen(std::string_view pointer, nlohmann::ordered_json value, std::string because) {
    set(pointer, std::move(value), Certainty::seen, std::move(because));
  }
  void given(std::string_view pointer, nlohmann::ordered_json value, std::string because) {
    set(pointer, std::move(value), Certainty::given, std::move(because));
  }
  void guess(std::string_view pointer, nlohmann::ordered_json value, std::string because) {
    set(pointer, std::move(value), Certainty::guessed, std::move(because));
  }
  void missing(std::string_view pointer, std::string because) { set(pointer, nullptr, Certainty::missing, std::move(because)); }

  /// The file shows what no scenario can say; `pointer` names it.
  void unsupported(std::string_view pointer, std::string because) {
    missing(pointer, std::move(because));
    keys_.back().settable = false;
  }

  [[nodiscard]] const std::vector<InferredKey>& keys() const { return keys_; }
  [[nodiscard]] const InferredKey* find(std::string_view pointer) const;
  /// The text of a key, or its number; empty and 0 where it is missing.
  [[nodiscard]] std::string text(std::string_view pointer) const;
  [[nodiscard]] std::int64_t number(std::string_view pointer) const;
  [[nodiscard]] bool complete() const;
  /// What scenarios::read_scenario_text reads, if it is complete. `why` tells what is guessed and what is missing.
  [[nodiscard]] nlohmann::ordered_json document(const std::string& name) const;

 private:
  void set(std::string_view pointer, nlohmann::ordered_json value, Certainty certainty, std::string because);
  std::vector<InferredKey> keys_;
};

}  // namespace stepcast::cli
