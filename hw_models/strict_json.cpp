// The Reader of strict JSON; parsing is in parse_json.cpp. Test: tests/unit/strict_json_test.cpp.
#include "hw_models/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast {
namespace {

const char* kind(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "a text";
    case Json::value_t::boolean: return "true or false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float: return "a number";
    default: return "something else";
  }
}

std::string join(const std::vector<const char*>& words) {
  std::string list;
  for (const char* word : words) list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", word);
  return list;
}

/// A JSON number as a whole number, if it is one and fits.
std::optional<std::int64_t> whole(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number <= std::uint64_t{std::numeric_limits<std::int64_t>::max()} ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  const double number = value.get<double>();
  return std::abs(number) <= 9007199254740992.0 && number == std::floor(number) ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
}

std::string range_text(std::int64_t min, std::int64_t max) {
  if (max == std::numeric_limits<std::int64_t>::max()) return fmt::format("at least {}", min);
  return fmt::format("from {} to {}", min, max);
}

std::string range_text(double min, double max) {
  if (min == kPositive.min) return max == kPositive.max ? std::string("more than 0") : fmt::format("more than 0 and at most {}", max);
  if (max == std::numeric_limits<double>::max()) return fmt::format("at least {}", min);
  return fmt::format("from {} to {}", min, max);
}

}  // namespace

std::string pointer_part(std::string_view key) {
  std::string part;
  for (const char c : key) part += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  return part;
}

Reader::Reader(const Json& object, const std::string& file, std::string pointer)
    : Reader(
          object, [file](std::string_view) { return file; }, std::move(pointer)) {}

Reader::Reader(const Json& object, Origin origin, std::string pointer, Spelling spelling)
    : object_(&object), origin_(std::move(origin)), pointer_(std::move(pointer)), spelling_(std::move(spelling)) {
  if (!object.is_object()) fail_at(pointer_, fmt::format("expected an object, found {}", kind(object)), "");
}

std::string Reader::pointer_to(std::string_view key) const { return pointer_ + "/" + pointer_part(key); }

void Reader::fail(std::string_view key, const std::string& what, const std::string& hint) const { fail_at(pointer_to(key), what, hint); }

void Reader::fail_at(const std::string& pointer, const std::string& what, const std::string& hint) const {
  throw InputError(printable(origin_(pointer), 400), printable(pointer, 200), what, hint);
}

bool Reader::has(std::string_view key) const {
  asked_.emplace_back(key);
  return object_->contains(key);
}

std::vector<std::string> Reader::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_->items()) names.push_back(key);
  return names;
}

const Json& Reader::value(std::string_view key) {
  if (!has(key)) fail(key, "is missing");
  return *object_->find(key);
}

double Reader::number(std::string_view key, Limits<double> limits) {
  const Json& found = value(key);
  if (!found.is_number()) fail(key, fmt::format("expected a number, found {}", kind(found)));
  const auto number = found.get<double>();
  if (!(number >= limits.min && number <= limits.max)) fail(key, fmt::format("{} is out of range", number), "must be " + range_text(limits.min, limits.max));
  return number;
}

std::int64_t Reader::integer(std::string_view key, Limits<std::int64_t> limits) {
  const Json& found = value(key);
  if (!found.is_number()) fail(key, fmt::format("expected a whole number, found {}", kind(found)));
  const auto number = whole(found);
  if (!number && std::abs(found.get<double>()) < 9007199254740992.0) fail(key, fmt::format("{} is not a whole number", found.get<double>()));
  if (!number || *number < limits.min || *number > limits.max) {
    fail(key, fmt::format("{} is out of range", printable(found.dump(), 40)), "must be " + range_text(limits.min, limits.max));
  }
  return *number;
}

bool Reader::boolean(std::string_view key) {
  const Json& found = value(key);
  if (!found.is_boolean()) fail(key, fmt::format("expected true or false, found {}", kind(found)));
  return found.get<bool>();
}

std::string Reader::text(std::string_view key, std::size_t max_length) {
  const Json& found = value(key);
  const std::optional<std::string> word = found.is_string() || !spelling_ ? std::nullopt : spelling_(pointer_to(key));
  if (!found.is_string() && !word) fail(key, fmt::format("expected a text, found {}", kind(found)));
  auto text = word ? *word : found.get<std::string>();
  if (text.size() > max_length) fail(key, fmt::format("is longer than {} characters", max_length));
  return text;
}

double Reader::si(std::string_view key, Dimension dimension, Limits<double> limits) {
  const Json& found = value(key);
  if (found.is_number()) fail(key, fmt::format("{} has no unit", printable(found.dump(), 40)), "write it as a text with one of " + unit_list(dimension));
  if (!found.is_string()) fail(key, fmt::format("expected a text with a unit ({}), found {}", unit_list(dimension), kind(found)));
  try {
    const double number = parse_si(found.get_ref<const std::string&>(), dimension);
    if (number >= limits.min && number <= limits.max) return number;
    fail(key, fmt::format("\"{}\" is out of range", printable(found.get_ref<const std::string&>(), 40)),
         "must be " + range_text(limits.min, limits.max) + (limits.max == kNotNegative.max ? "" : " in SI units"));
  } catch (const UnitError& error) { fail(key, error.what()); }
}

std::int64_t Reader::bytes(std::string_view key, Limits<std::int64_t> limits) {
  const Json& found = value(key);
  if (found.is_number()) fail(key, fmt::format("{} has no unit", printable(found.dump(), 40)), "write it as a text with one of " + unit_list(Dimension::size));
  if (!found.is_string()) fail(key, fmt::format("expected a size such as \"512 MiB\", found {}", kind(found)));
  try {
    const std::int64_t number = parse_bytes(found.get_ref<const std::string&>());
    if (number >= limits.min && number <= limits.max) return number;
    fail(key, fmt::format("\"{}\" is out of range", printable(found.get_ref<const std::string&>(), 40)),
         "must be " + range_text(limits.min, limits.max) + " bytes");
  } catch (const UnitError& error) { fail(key, error.what()); }
}

std::size_t Reader::choice(std::string_view key, const std::vector<const char*>& names) {
  const std::string word = text(key);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (word == names[i]) return i;
  }
  const std::string near = nearest(word, names);
  fail(key, fmt::format("unknown value \"{}\"", printable(word, 40)),
       (near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near)) + "one of " + join(names));
}

bool Reader::is_word(std::string_view key, std::string_view word) {
  if (!has(key)) return false;
  const Json& found = *object_->find(key);
  return found.is_string() && found.get_ref<const std::string&>() == word;
}

bool Reader::is_boolean(std::string_view key) const { return has(key) && object_->find(key)->is_boolean(); }

Reader Reader::object(std::string_view key) { return {value(key), origin_, pointer_to(key), spelling_}; }

std::vector<Reader> Reader::objects(std::string_view key) {
  const Json& found = value(key);
  if (!found.is_array()) fail(key, fmt::format("expected an array, found {}", kind(found)));
  std::vector<Reader> readers;
  for (std::size_t i = 0; i < found.size(); ++i) readers.emplace_back(found[i], origin_, fmt::format("{}/{}", pointer_to(key), i), spelling_);
  return readers;
}

std::vector<std::string> Reader::texts(std::string_view key) {
  const Json& found = value(key);
  if (!found.is_array()) fail(key, fmt::format("expected an array of texts, found {}", kind(found)));
  std::vector<std::string> words;
  for (const Json& item : found) {
    if (!item.is_string()) fail(key, fmt::format("expected an array of texts, found {} in it", kind(item)));
    words.push_back(item.get<std::string>());
  }
  return words;
}

std::vector<double> Reader::numbers(std::string_view key) {
  const Json& found = value(key);
  if (!found.is_array()) fail(key, fmt::format("expected an array of numbers, found {}", kind(found)));
  std::vector<double> values;
  for (const Json& item : found) {
    if (!item.is_number()) fail(key, fmt::format("expected an array of numbers, found {} in it", kind(item)));
    values.push_back(item.get<double>());
  }
  return values;
}

std::vector<std::string> Reader::unread() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : object_->items()) {
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) names.push_back(key);
  }
  return names;
}

void Reader::finish() const {
  for (const std::string& key : unread()) {
    const std::string near = nearest(key, asked_);
    fail(key, "unknown key", near.empty() ? "" : fmt::format("did you mean \"{}\"?", near));
  }
}

}  // namespace stepcast
