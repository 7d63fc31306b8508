// A configuration file of a training framework, key by key: what is used, what says nothing about the cost of a step (with the reason), and what is refused. At the end no key may be
// left over. docs/import.md; test: tests/unit/training_config_test.cpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/strict_json.hpp"
#include "scenarios/limits.hpp"

namespace stepcast::scenarios {

/// A key that changes nothing, or is not modelled, and why.
struct IgnoredKey {
  std::string file, key, reason;
};

class Settings {
 public:
  /// Keys are dotted: "training.seq_len". Texts such as "${max_seq_len}" are replaced by what they point at. Throws InputError on anything but an object.
  Settings(Json json, const std::string& file);

  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  // Each takes the key; nothing where it is absent, null or "auto". Throws InputError on another type or a value out of range.
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t min, std::int64_t max);
  std::optional<double> number(std::string_view key);
  std::optional<bool> flag(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<std::vector<std::string>> texts(std::string_view key);
  const Json* object(std::string_view key);

  /// Takes keys, with all below them, that say nothing about a step.
  void ignore(std::initializer_list<const char*> keys, const char* reason);
  void ignore(std::string_view key, const std::string& reason);
  /// Refuses a degree or flag that is not at its neutral value (1, 0, false, null, "none").
  void only_neutral(std::initializer_list<const char*> keys, const char* what);
  [[noreturn]] void refuse(std::string_view key, const std::string& what, const std::string& hint = "") const;
  /// Refuses what nobody took.
  void finish() const;

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const Json& json() const { return json_; }
  /// Takes a key, whatever it holds.
  const Json* take(std::string_view key);
  [[nodiscard]] std::vector<IgnoredKey> ignored() const { return ignored_; }
  [[nodiscard]] const std::set<std::string>& used() const { return used_; }

 private:
  [[nodiscard]] const Json* find(std::string_view key) const;
  const Json* value(std::string_view key);  // null where there is nothing to read; takes the key

  Json json_;
  std::string file_;
  std::set<std::string> taken_, used_;
  std::vector<IgnoredKey> ignored_;
};

}  // namespace stepcast::scenarios
