// Strict JSON: what a file says is used or refused, never ignored. Unknown and duplicate keys, wrong types, numbers out of range and missing units are errors
// with file and JSON pointer (docs/adr/0004). `Reader` walks one object; call `finish` when every key that may be there has been asked for.
// Test: tests/unit/strict_json_test.cpp; fuzzed by tests/fuzz/scenario.cpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/text_units.hpp"
#include "hw_models/units.hpp"

namespace stepcast {

using Json = nlohmann::json;

inline constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;
inline constexpr int kMaxJsonDepth = 64;

/// One JSON document. Throws InputError (file, line and column or JSON pointer) on bad syntax, invalid UTF-8, a duplicate key, nesting past kMaxJsonDepth,
/// NaN, infinity, numbers past double range, an empty text or anything after the document.
Json parse_json(std::string_view text, const std::string& file);
/// Reads and parses a file of at most `max_bytes`.
Json read_json(const std::string& path, std::size_t max_bytes = kMaxJsonBytes);

/// Inclusive limits, in SI units for quantities.
template <class T>
struct Limits {
  T min = std::numeric_limits<T>::lowest(), max = std::numeric_limits<T>::max();
};
inline constexpr Limits<double> kNotNegative{0, std::numeric_limits<double>::max()};
inline constexpr Limits<double> kPositive{std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()};

/// A value of an enum and how files spell it.
template <class E>
struct EnumName {
  E value;
  const char* name;
};

/// The text of a value in such a table; "?" if it is not there.
template <class Table, class E>
const char* spelled(const Table& table, E value) {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return "?";
}

/// Reads one JSON object key by key. The object must outlive the reader. Every method throws InputError.
/// `number("k")` requires the key; `maybe("k", target)` leaves the target as it is, and returns false, where the key is absent.
class Reader {
 public:
  /// Names the file that a pointer's value came from (several where files are merged).
  using Origin = std::function<std::string(std::string_view pointer)>;
  /// How a number, true or false was written where it could as well have been meant as a word: a key that wants a text takes that (2.8 as "2.8").
  using Spelling = std::function<std::optional<std::string>(std::string_view pointer)>;

  Reader(const Json& object, const std::string& file, std::string pointer = "");
  Reader(const Json& object, Origin origin, std::string pointer = "", Spelling spelling = {});

  [[nodiscard]] bool has(std::string_view key) const;
  /// Accepts a key, whatever its value.
  void ignore(std::string_view key) { asked_.emplace_back(key); }
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] const std::string& pointer() const { return pointer_; }

  double number(std::string_view key, Limits<double> limits = {});
  std::int64_t integer(std::string_view key, Limits<std::int64_t> limits = {});
  bool boolean(std::string_view key);
  std::string text(std::string_view key, std::size_t max_length = 4096);
  /// "25 GB/s" for Dimension::rate, in SI units.
  double si(std::string_view key, Dimension dimension, Limits<double> limits = kNotNegative);
  template <class Q>
  Q quantity(std::string_view key, Limits<double> limits = kNotNegative) {
    return Q(si(key, dimension_of<Q>(), limits));
  }
  /// "512 MiB", in bytes.
  std::int64_t bytes(std::string_view key, Limits<std::int64_t> limits = {0, std::numeric_limits<std::int64_t>::max()});
  template <class Table>
  auto enumeration(std::string_view key, const Table& table);
  Reader object(std::string_view key);
  std::vector<Reader> objects(std::string_view key);     // an array of objects
  std::vector<std::string> texts(std::string_view key);  // an array of texts
  std::vector<double> numbers(std::string_view key);     // an array of numbers

  bool maybe(std::string_view key, double& target, Limits<double> limits = {}) { return has(key) && (target = number(key, limits), true); }
  bool maybe(std::string_view key, bool& target) { return has(key) && (target = boolean(key), true); }
  bool maybe(std::string_view key, std::string& target) { return has(key) && (target = text(key), true); }
  template <std::integral I>
  requires(!std::same_as<I, bool>) bool maybe(std::string_view key, I& target,
                                              Limits<std::int64_t> limits = {std::numeric_limits<I>::min(),
                                                                             static_cast<std::int64_t>(std::numeric_limits<I>::max())}) {
    return has(key) && (target = static_cast<I>(integer(key, limits)), true);
  }
  template <int S, int B, int F>
  bool maybe(std::string_view key, Quantity<S, B, F>& target, Limits<double> limits = kNotNegative) {
    return has(key) && (target = quantity<Quantity<S, B, F>>(key, limits), true);
  }
  template <class E, class Table>
  requires std::is_enum_v<E>
  bool maybe(std::string_view key, E& target, const Table& table) { return has(key) && (target = enumeration(key, table), true); }
  std::optional<Reader> maybe_object(std::string_view key) { return has(key) ? std::optional(object(key)) : std::nullopt; }
  /// True, and the key counts as read, if its value is the text `word` (e.g. "none").
  bool is_word(std::string_view key, std::string_view word);
  [[nodiscard]] bool is_boolean(std::string_view key) const;

  /// Keys that nobody asked for, for formats whose unknown keys are worth a warning only.
  [[nodiscard]] std::vector<std::string> unread() const;
  /// Refuses keys that nobody asked for, with the nearest one that was asked for as a hint.
  void finish() const;
  /// Throws InputError about a key of this object.
  [[noreturn]] void fail(std::string_view key, const std::string& what, const std::string& hint = "") const;

 private:
  const Json& value(std::string_view key);
  std::size_t choice(std::string_view key, const std::vector<const char*>& names);
  [[noreturn]] void fail_at(const std::string& pointer, const std::string& what, const std::string& hint) const;
  [[nodiscard]] std::string pointer_to(std::string_view key) const;

  const Json* object_;
  Origin origin_;
  std::string pointer_;
  Spelling spelling_;
  mutable std::vector<std::string> asked_;  // the bookkeeping of `finish`
};

/// Key as a part of a JSON pointer (RFC 6901: ~ is ~0, / is ~1).
std::string pointer_part(std::string_view key);

template <class Table>
auto Reader::enumeration(std::string_view key, const Table& table) {
  std::vector<const char*> names;
  names.reserve(std::size(table));
  for (const auto& entry : table) names.push_back(entry.name);
  return table[choice(key, names)].value;
}

}  // namespace stepcast
