// YAML and TOML as JSON documents, so that every configuration file is read by one strict reader. Test: tests/unit/text_formats_test.cpp; fuzzed by tests/fuzz/training_config.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "hw_models/strict_json.hpp"

namespace stepcast::scenarios {

inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

/// One YAML document: mappings, sequences, scalars by YAML's core schema (with yes, no, on, off as in YAML 1.1, which Python reads). Throws InputError (file, line) on bad
/// syntax, a key that is given twice or isn't a text, aliases, nesting past kMaxJsonDepth.
Json parse_yaml(std::string_view text, const std::string& file);
/// The same for TOML; dates become texts.
Json parse_toml(std::string_view text, const std::string& file);

}  // namespace stepcast::scenarios
