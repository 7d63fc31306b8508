// See layers.hpp.
#include "scenarios/layers.hpp"

#include <algorithm>
#include <filesystem>

#include "hw_models/embedded.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::scenarios {
namespace {

constexpr std::string_view kSuffix = ".json";

std::string stem_of(std::string_view path) {
  path.remove_prefix(path.find_last_of('/') + 1);  // npos + 1 == 0
  if (path.ends_with(kSuffix)) path.remove_suffix(kSuffix.size());
  return std::string(path);
}

std::optional<Source> built_in(const std::string& stem) {
  for (const EmbeddedFile& file : scenario_files()) {
    if (stem_of(file.name) == stem) return Source{stem + " (built in)", std::string(file.text), "", true};
  }
  return std::nullopt;
}

[[noreturn]] void refuse_name(const std::string& name, const std::string& file, const std::string& pointer) {
  const std::string near = nearest(name, scenario_names());
  throw InputError(file, pointer, "no scenario \"" + printable(name) + "\"",
                   near.empty() ? "give the path of a file, or a built-in scenario's name" : "did you mean the built-in \"" + near + "\"?");
}

Source from_file(const std::string& path) { return {path, read_text_file(path, kMaxScenarioBytes), std::filesystem::path(path).parent_path().string(), false}; }

/// Same file, same text: what a cycle of bases would come back to.
std::string identity(const Source& source) {
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(source.file, error);
  return source.built_in || error ? source.file : real.string();
}

/// Splits "/a/b~1c" into {"a", "b/c"}.
std::vector<std::string> pointer_parts(std::string_view pointer) {
  std::vector<std::string> keys;
  for (std::size_t at = 0; at < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', at + 1), pointer.size());
    std::string key;
    for (std::size_t i = at + 1; i < end; ++i) {
      if (pointer[i] == '~' && i + 1 < end && (pointer[i + 1] == '0' || pointer[i + 1] == '1')) key += pointer[++i] == '0' ? '~' : '/';
      else key += pointer[i];
    }
    keys.push_back(std::move(key));
    at = end;
  }
  return keys;
}

/// How many of the keys lead somewhere in `json`.
std::size_t depth_found(const Json& json, const std::vector<std::string>& keys) {
  const Json* at = &json;
  std::size_t depth = 0;
  for (const std::string& key : keys) {
    if (!at->is_object() || !at->contains(key)) break;
    at = &*at->find(key);
    ++depth;
  }
  return depth;
}

/// The library checks UTF-8 when it parses or writes, not when a text is put into a document.
bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::ordered_json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) { return false; }
}

Json value_of(const std::string& text) {
  try {
    return parse_json(text, "--set");
  } catch (const InputError&) { return text; }
}

}  // namespace

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : scenario_files()) names.push_back(stem_of(file.name));
  std::sort(names.begin(), names.end());
  return names;
}

std::string Layers::origin(std::string_view pointer) const {
  const std::vector<std::string> keys = pointer_parts(pointer);
  const Layer* best = &layers.back();
  std::size_t depth = 0;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    const std::size_t found = depth_found(layer->patch, keys);
    if (found <= depth) continue;
    depth = found;
    best = &*layer;
  }
  // A missing key is nobody's: name the scenario's own file rather than a --set.
  if (depth < keys.size()) {
    for (auto layer = layers.rbegin(); layer != layers.rend() && best->file == "--set"; ++layer) best = &*layer;
  }
  return best->file;
}

std::optional<std::string> Layers::spelling(std::string_view pointer) const {
  const std::vector<std::string> keys = pointer_parts(pointer);
  const auto gives = [&](const Layer& layer) { return depth_found(layer.patch, keys) == keys.size(); };
  const auto layer = std::find_if(layers.rbegin(), layers.rend(), gives);
  if (layer == layers.rend() || layer->text.empty() || pointer_parts(layer->pointer) != keys) return std::nullopt;
  return layer->text;
}

Source find_source(const std::string& path_or_name, const Source* from) {
  const bool path = path_or_name.find('/') != std::string::npos || path_or_name.ends_with(kSuffix);
  if (!path || (from && from->built_in)) {
    if (auto found = built_in(stem_of(path_or_name))) return *found;
  }
  if (from && from->built_in) refuse_name(path_or_name, from->file, "/base");
  const std::filesystem::path file = from ? std::filesystem::path(from->folder) / path_or_name : std::filesystem::path(path_or_name);
  std::error_code error;
  if (!path && !std::filesystem::exists(file, error)) refuse_name(path_or_name, from ? from->file : "scenario", from ? "/base" : "");
  if (path_or_name.empty() || path_or_name.size() > 4000) throw InputError(from ? from->file : "scenario", from ? "/base" : "", "is no file name");
  return from_file(file.string());
}

Layers stack(const Source& source) {
  std::vector<Layer> chain;  // highest first
  std::vector<std::string> seen;
  for (Source at = source;;) {
    if (std::find(seen.begin(), seen.end(), identity(at)) != seen.end()) throw InputError(chain.back().file, "/base", "the chain of base files is a circle");
    if (chain.size() == kMaxBaseChain) throw InputError(chain.back().file, "/base", "the chain of base files is longer than " + std::to_string(kMaxBaseChain));
    seen.push_back(identity(at));
    chain.push_back({at.file, parse_json(at.text, at.file)});
    Json& json = chain.back().patch;
    Reader reader(json, at.file);
    if (!reader.has("base")) break;
    const std::string base = reader.text("base");
    json.erase("base");
    at = find_source(base, &at);
  }
  Layers result{printable(stem_of(source.file)), {chain.rbegin(), chain.rend()}, {}};
  if (source.built_in) result.stem = source.file.substr(0, source.file.find(' '));
  result.merged = result.layers.front().patch;
  for (std::size_t i = 1; i < result.layers.size(); ++i) {
    // What a file is called and why it exists is its own.
    result.merged.erase("name");
    result.merged.erase("why");
    result.merged.merge_patch(result.layers[i].patch);
  }
  return result;
}

void apply_set(Layers& layers, const std::string& set) {
  const std::size_t equals = set.find('=');
  if (set.empty() || set[0] != '/' || equals == std::string::npos) {
    throw InputError("--set", "", "\"" + printable(set) + "\" is not of the form /json/pointer=value", "for example /batch/micro_batch=2");
  }
  if (!is_utf8(set)) throw InputError("--set", "", "\"" + printable(set) + "\" is not UTF-8");
  const std::vector<std::string> keys = pointer_parts(std::string_view(set).substr(0, equals));
  if (keys.size() > kMaxJsonDepth) throw InputError("--set", "", "the pointer has too many parts");
  if (keys.front() == "base") throw InputError("--set", "/base", "can only be given in a file");
  Json patch = value_of(set.substr(equals + 1));
  const bool could_be_word = patch.is_number() || patch.is_boolean();
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    Json outer = Json::object();
    outer[*key] = std::move(patch);
    patch = std::move(outer);
  }
  layers.merged.merge_patch(patch);
  layers.layers.push_back({"--set", std::move(patch), set.substr(0, equals), could_be_word ? set.substr(equals + 1) : ""});
}

}  // namespace stepcast::scenarios
