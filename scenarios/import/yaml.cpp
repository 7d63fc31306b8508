// See text_formats.hpp. Syntax: yaml-cpp.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <sstream>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"
#include "scenarios/import/text_formats.hpp"

namespace stepcast::scenarios {
namespace {

constexpr int kMaxBrackets = 64;

[[noreturn]] void fail(const std::string& file, int line, const std::string& what) {
  throw InputError(printable(file, 400), "line " + std::to_string(line + 1), what);
}

/// The parser recurses: what would nest too deep is refused before it is read. Brackets and indentation both nest; a line adds no more levels than it has marks.
void refuse_deep_yaml(std::string_view text, const std::string& file) {
  int open = 0, line = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && (text[i] == '[' || text[i] == '{')) ++open;
    if (i < text.size() && (text[i] == ']' || text[i] == '}')) --open;
    if (open > kMaxBrackets) fail(file, line, "is nested too deep");
    if (i < text.size() && text[i] != '\n') continue;
    const std::string_view one = text.substr(begin, i - begin);
    const std::size_t marks = one.find_first_not_of(" -?:\t");
    if ((marks == std::string_view::npos ? one.size() : marks) > 4 * static_cast<std::size_t>(kMaxJsonDepth)) fail(file, line, "is nested too deep");
    begin = i + 1;
    ++line;
  }
}

bool is_one_of(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (text == word) return true;
  }
  return false;
}

template <class T>
bool whole_number(const std::string& text, T& value) {
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && end != begin;
}

/// A plain scalar by what it looks like; a quoted one is a text.
Json scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (is_one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) return true;
  if (is_one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) return false;
  std::int64_t integer = 0;
  if (std::string digits = text; std::erase(digits, '_'), whole_number(digits, integer) && !text.starts_with('_')) return integer;
  double number = 0;
  if (whole_number(text, number) && std::isfinite(number)) return number;
  return text;
}

Json converted(const YAML::Node& node, const std::string& file, int depth);

Json mapping(const YAML::Node& node, const std::string& file, int depth) {
  Json json = Json::object();
  for (const auto& entry : node) {
    const int line = entry.first.Mark().line;
    if (!entry.first.IsScalar()) fail(file, line, "a key must be a text");
    const std::string& key = entry.first.Scalar();
    if (json.contains(key)) fail(file, line, "the key \"" + printable(key, 60) + "\" is given twice");
    json[key] = converted(entry.second, file, depth + 1);
  }
  return json;
}

Json converted(const YAML::Node& node, const std::string& file, int depth) {
  if (depth > kMaxJsonDepth) fail(file, node.Mark().line, "is nested too deep");
  switch (node.Type()) {
    case YAML::NodeType::Scalar: return scalar(node);
    case YAML::NodeType::Map: return mapping(node, file, depth);
    case YAML::NodeType::Sequence: {
      Json json = Json::array();
      for (const auto& entry : node) json.push_back(converted(entry, file, depth + 1));
      return json;
    }
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined: break;
  }
  return nullptr;
}

/// An alias repeats what stands elsewhere, and can do so without end.
void refuse_aliases(std::string_view text, const std::string& file) {
  int line = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\n') ++line;
    const bool begins = i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n' || text[i - 1] == '[' || text[i - 1] == ',' || text[i - 1] == '{';
    if (text[i] == '*' && begins && std::isalnum(static_cast<unsigned char>(text[i + 1])) != 0) fail(file, line, "aliases are not supported");
  }
}

/// Reads a document and keeps nothing.
class Skip : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/, const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}
};

/// Not by YAML::LoadAll: behind a stray closing bracket it finds empty documents without end.
void refuse_second_document(const std::string& text, const std::string& file) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Skip skip;
  if (parser.HandleNextDocument(skip) && parser.HandleNextDocument(skip)) throw InputError(printable(file, 400), "", "has several documents");
}

}  // namespace

Json parse_yaml(std::string_view text, const std::string& file) {
  refuse_deep_yaml(text, file);
  refuse_aliases(text, file);
  try {
    const std::string whole(text);
    refuse_second_document(whole, file);
    Json json = converted(YAML::Load(whole), file, 0);
    static_cast<void>(json.dump());  // refuses what is not UTF-8
    return json;
  } catch (const YAML::Exception& error) { fail(file, error.mark.line, printable(error.msg)); } catch (const nlohmann::json::exception&) {
    throw InputError(printable(file, 400), "", "is not UTF-8");
  }
}

}  // namespace stepcast::scenarios
