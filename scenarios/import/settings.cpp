// See settings.hpp.
#include "scenarios/import/settings.hpp"

#include <fmt/format.h>

#include <cmath>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::scenarios {
namespace {

constexpr std::size_t kMostReplacements = 16;

std::vector<std::string> key_parts(std::string_view key) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= key.size();) {
    const std::size_t dot = std::min(key.find('.', at), key.size());
    names.emplace_back(key.substr(at, dot - at));
    at = dot + 1;
  }
  return names;
}

const Json* at(const Json& json, std::string_view key) {
  const Json* here = &json;
  for (const std::string& name : key_parts(key)) {
    if (!here->is_object() || !here->contains(name)) return nullptr;
    here = &*here->find(name);
  }
  return here;
}

/// The value behind "${a.b}", which stands for the whole text; else the value itself.
const Json* replaced(const Json& root, const Json* value) {
  for (std::size_t i = 0; i < kMostReplacements && value && value->is_string(); ++i) {
    const auto& text = value->get_ref<const std::string&>();
    if (!text.starts_with("${") || !text.ends_with('}')) return value;
    value = at(root, text.substr(2, text.size() - 3));
  }
  return value;
}

/// Every key that holds something else than an object; objects without keys too.
void leaves(const Json& json, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& [name, value] : json.items()) {
    const std::string key = prefix.empty() ? name : fmt::format("{}.{}", prefix, name);
    if (value.is_object() && !value.empty()) leaves(value, key, keys);
    else keys.push_back(key);
  }
}

bool covers(const std::string& taken, const std::string& key) { return key == taken || key.starts_with(taken + "."); }

bool is_neutral(const Json& value) {
  if (value.is_null()) return true;
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0 || value.get<double>() == 1 || value.get<double>() == -1;
  if (!value.is_string()) return value.empty();
  const auto& text = value.get_ref<const std::string&>();
  return text.empty() || text == "none" || text == "None";
}

}  // namespace

Settings::Settings(Json json, const std::string& file) : json_(std::move(json)), file_(printable(file, 400)) {
  if (!json_.is_object()) throw InputError(file_, "", "is not a configuration: keys with values are expected");
}

void Settings::refuse(std::string_view key, const std::string& what, const std::string& hint) const { throw InputError(file_, printable(key), what, hint); }

const Json* Settings::find(std::string_view key) const { return at(json_, key); }

const Json* Settings::take(std::string_view key) {
  taken_.emplace(key);  // also where it is absent: what was asked for is what a mistyped key may have meant
  const Json* found = find(key);
  if (found) used_.emplace(key);
  return found;
}

const Json* Settings::value(std::string_view key) {
  const Json* found = replaced(json_, take(key));
  if (!found || found->is_null()) return nullptr;
  if (*found != "auto") return found;
  used_.erase(std::string(key));
  ignored_.push_back({file_, std::string(key), "\"auto\": the default, or what the scenario says"});
  return nullptr;
}

std::optional<double> Settings::number(std::string_view key) {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  if (!found->is_number()) refuse(key, "expected a number");
  return found->get<double>();
}

/// 5e8 is as good as 500000000.
std::optional<std::int64_t> Settings::integer(std::string_view key, std::int64_t min, std::int64_t max) {
  const std::optional<double> found = number(key);
  if (!found) return std::nullopt;
  if (*found != std::floor(*found)) refuse(key, "expected a whole number");
  if (*found < static_cast<double>(min) || *found > static_cast<double>(max)) refuse(key, fmt::format("must be from {} to {}", min, max));
  return static_cast<std::int64_t>(*found);
}

std::optional<bool> Settings::flag(std::string_view key) {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  if (found->is_boolean()) return found->get<bool>();
  // Templates and environments write flags as texts.
  for (const char* word : {"true", "True", "yes"}) {
    if (*found == word) return true;
  }
  for (const char* word : {"false", "False", "no"}) {
    if (*found == word) return false;
  }
  refuse(key, "expected true or false");
}

std::optional<std::string> Settings::text(std::string_view key) {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  if (found->is_number_integer()) return std::to_string(found->get<std::int64_t>());
  if (found->is_boolean()) return found->get<bool>() ? "true" : "false";
  if (!found->is_string()) refuse(key, "expected a text");
  return found->get<std::string>();
}

std::optional<std::vector<std::string>> Settings::texts(std::string_view key) {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  if (found->is_string()) return std::vector<std::string>{found->get<std::string>()};
  if (!found->is_array()) refuse(key, "expected a list of texts");
  std::vector<std::string> list;
  for (const Json& one : *found) {
    if (!one.is_string()) refuse(key, "expected a list of texts");
    list.push_back(one.get<std::string>());
  }
  return list;
}

const Json* Settings::object(std::string_view key) {
  const Json* found = value(key);
  if (found && !found->is_object()) refuse(key, "expected keys with values");
  return found;
}

void Settings::ignore(std::string_view key, const std::string& reason) {
  if (!find(key)) return;
  taken_.emplace(key);
  used_.erase(std::string(key));
  ignored_.push_back({file_, std::string(key), reason});
}

void Settings::ignore(std::initializer_list<const char*> keys, const char* reason) {
  for (const char* key : keys) ignore(key, reason);
}

void Settings::only_neutral(std::initializer_list<const char*> keys, const char* what) {
  for (const char* key : keys) {
    const Json* found = replaced(json_, take(key));
    if (found && !is_neutral(*found)) refuse(key, what);
  }
}

void Settings::finish() const {
  std::vector<std::string> keys;
  leaves(json_, "", keys);
  for (const std::string& key : keys) {
    const bool taken = std::any_of(taken_.begin(), taken_.end(), [&](const std::string& one) { return covers(one, key); });
    if (taken) continue;
    const std::string near = nearest(key, taken_);
    refuse(key, "is not known", near.empty() ? "every key is used, ignored for a reason, or refused" : "did you mean " + near + "?");
  }
}

}  // namespace stepcast::scenarios
