// See text_formats.hpp. Syntax: toml11.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <toml.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"
#include "scenarios/import/text_formats.hpp"

namespace stepcast::scenarios {
namespace {

[[noreturn]] void fail(const std::string& file, const std::string& what) { throw InputError(printable(file, 400), "", what); }

/// The parser recurses into brackets and dotted keys: what would nest too deep is refused before it is read.
void refuse_deep_toml(std::string_view text, const std::string& file) {
  int open = 0, dots = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++open;
    if (c == ']' || c == '}') --open;
    dots = c == '\n' ? 0 : dots + (c == '.' ? 1 : 0);
    if (open > kMaxJsonDepth || dots > 16 * kMaxJsonDepth) fail(file, "is nested too deep");
  }
}

Json converted(const toml::value& value, const std::string& file, int depth) {
  if (depth > kMaxJsonDepth) fail(file, "is nested too deep");
  if (value.is_boolean()) return value.as_boolean();
  if (value.is_integer()) return value.as_integer();
  if (value.is_string()) return value.as_string().str;
  if (value.is_floating()) {
    if (!std::isfinite(value.as_floating())) fail(file, "infinity and NaN are no values of settings");
    return value.as_floating();
  }
  if (value.is_array()) {
    Json json = Json::array();
    for (const toml::value& entry : value.as_array()) json.push_back(converted(entry, file, depth + 1));
    return json;
  }
  if (value.is_table()) {
    Json json = Json::object();
    for (const auto& [key, entry] : value.as_table()) json[key] = converted(entry, file, depth + 1);
    return json;
  }
  std::ostringstream date;
  date << value;
  return date.str();
}

}  // namespace

Json parse_toml(std::string_view text, const std::string& file) {
  refuse_deep_toml(text, file);
  std::istringstream stream{std::string(text)};
  try {
    Json json = converted(toml::parse(stream, file), file, 0);
    static_cast<void>(json.dump());  // refuses what is not UTF-8
    return json;
  } catch (const toml::exception& error) {
    const std::string what = error.what();
    throw InputError(printable(file, 400), "line " + std::to_string(error.location().line()), printable(what.substr(0, what.find('\n'))));
  } catch (const nlohmann::json::exception&) { fail(file, "is not UTF-8"); } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    fail(file, printable(what.substr(0, what.find('\n'))));
  }
}

}  // namespace stepcast::scenarios
