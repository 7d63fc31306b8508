// The settings that the page of `stepcast serve` moves: sliders, choices and switches over values of a scenario. docs/serve.md; test: tests/unit/serve_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace stepcast::cli {

/// How a setting is shown: stops of a slider, one of several, or on and off.
enum class ControlKind { slider, choice, toggle };

/// A setting that means something only while another one has a value.
struct ControlNeed {
  const char* pointer = nullptr;
  const char* value = nullptr;  // a text
  const char* reason = nullptr;
};

struct Control {
  const char* pointer;
  const char* label;
  const char* group;
  ControlKind kind;
  nlohmann::json options;  // all values that may be asked for, spelled as a resolved scenario spells them
  bool leads = false;      // settings that contradict it give way to it
  bool yields = true;      // may give way
  ControlNeed need = {};
};

/// In the order of the page; controls of a group stand together.
const std::vector<Control>& controls();
/// Null if none has the pointer.
const Control* find_control(std::string_view pointer);

}  // namespace stepcast::cli
