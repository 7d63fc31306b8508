// Test: tests/unit/inference_test.cpp.
#include "cli/diagnose/draft.hpp"

#include <algorithm>

namespace stepcast::cli {

namespace {

std::string list_of(const std::vector<InferredKey>& keys, Certainty certainty) {
  std::string list;
  for (const InferredKey& key : keys) {
    if (key.certainty == certainty) list += (list.empty() ? "" : ", ") + key.pointer;
  }
  return list;
}

}  // namespace

const char* name(Certainty certainty) {
  constexpr const char* kNames[] = {"seen", "given", "guessed", "missing"};
  return kNames[static_cast<std::size_t>(certainty)];
}

const InferredKey* ScenarioDraft::find(std::string_view pointer) const {
  const auto at = std::find_if(keys_.begin(), keys_.end(), [pointer](const InferredKey& key) { return key.pointer == pointer; });
  return at == keys_.end() ? nullptr : &*at;
}

void ScenarioDraft::set(std::string_view pointer, nlohmann::ordered_json value, Certainty certainty, std::string because) {
  InferredKey key{std::string(pointer), std::move(value), certainty, std::move(because)};
  const auto at = std::find_if(keys_.begin(), keys_.end(), [pointer](const InferredKey& known) { return known.pointer == pointer; });
  if (at == keys_.end()) keys_.push_back(std::move(key));
  else *at = std::move(key);
}

std::string ScenarioDraft::text(std::string_view pointer) const {
  const InferredKey* key = find(pointer);
  return key && key->value.is_string() ? key->value.get<std::string>() : "";
}

std::int64_t ScenarioDraft::number(std::string_view pointer) const {
  const InferredKey* key = find(pointer);
  return key && key->value.is_number_integer() ? key->value.get<std::int64_t>() : 0;
}

bool ScenarioDraft::complete() const {
  return std::none_of(keys_.begin(), keys_.end(), [](const InferredKey& key) { return key.certainty == Certainty::missing; });
}

nlohmann::ordered_json ScenarioDraft::document(const std::string& name) const {
  const std::string guessed = list_of(keys_, Certainty::guessed), lacking = list_of(keys_, Certainty::missing);
  std::string why = "Inferred from a trace.";
  if (!guessed.empty()) why += " Guessed: " + guessed + ".";
  if (!lacking.empty()) why += " Missing: " + lacking + ".";
  nlohmann::ordered_json document = {{"name", name}, {"why", why}};
  for (const InferredKey& key : keys_) {
    if (key.certainty != Certainty::missing) document[nlohmann::ordered_json::json_pointer(key.pointer)] = key.value;
  }
  return document;
}

}  // namespace stepcast::cli
