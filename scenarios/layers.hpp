// The layers of a scenario before it is read: its chain of base files, the file itself, and --set values, merged as RFC 7386 patches, and which layer a value
// came from. Private to this folder. For users: docs/scenario.md, "Variants". Test: tests/unit/layers_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/strict_json.hpp"

namespace stepcast::scenarios {

struct Layer {
  std::string file;  // as messages name it
  Json patch;
  std::string pointer{}, text{};  // of a --set: the value as it was written, if that is a number, true or false
};

/// A text and where its "base" is sought: among the built-in scenarios, or in `folder`.
struct Source {
  std::string file, text, folder;
  bool built_in = false;
};

struct Layers {
  std::string stem;           // name of the file without folder and .json: the default name of the scenario
  std::vector<Layer> layers;  // lowest first
  Json merged;                // without "base"
  /// File of the highest layer that has the value at `pointer`, or its nearest parent.
  [[nodiscard]] std::string origin(std::string_view pointer) const;
  /// How the value at `pointer` was written, where a --set gave it without quotes that would make it a text.
  [[nodiscard]] std::optional<std::string> spelling(std::string_view pointer) const;
};

/// The file at a path, or the built-in scenario of that name. `from`: the file that names it as its base, if any. Throws InputError.
Source find_source(const std::string& path_or_name, const Source* from = nullptr);
/// Follows "base" (missing files, cycles and chains past kMaxBaseChain are errors) and merges.
Layers stack(const Source& source);
/// Applies "/json/pointer=value" on top: the value is JSON if it parses as such, else a text; to a key that wants a text, a number, true and false are words too. Throws InputError.
void apply_set(Layers& layers, const std::string& set);

}  // namespace stepcast::scenarios
