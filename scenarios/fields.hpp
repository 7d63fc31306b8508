// Two visitors over the fields of a section: one reads them from strict JSON, one writes them. A section lists its keys once (sections.hpp), so that what is
// read and what is written cannot drift apart. Test: tests/unit/scenario_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hw_models/strict_json.hpp"
#include "hw_models/text_units.hpp"

namespace stepcast::scenarios {

enum class Need : std::uint8_t { optional, required };

class FieldReader {
 public:
  explicit FieldReader(Reader reader) : reader_(std::move(reader)) {}
  Reader& reader() { return reader_; }
  void finish() const { reader_.finish(); }

  template <class I>
  void count(const char* key, I& value, std::int64_t min, std::int64_t max, Need need = Need::optional) {
    if (present(key, need)) value = static_cast<I>(reader_.integer(key, {min, max}));
  }
  void ratio(const char* key, double& value, double min, double max) { reader_.maybe(key, value, Limits<double>{min, max}); }
  void flag(const char* key, bool& value) { reader_.maybe(key, value); }
  /// A flag whose default depends on other fields.
  void flag(const char* key, bool& value, bool by_default) {
    value = by_default;
    reader_.maybe(key, value);
  }
  void text(const char* key, std::string& value) { reader_.maybe(key, value); }
  void time(const char* key, Seconds& value, double max) { reader_.maybe(key, value, Limits<double>{0, max}); }
  template <class E, class Table>
  void choice(const char* key, E& value, const Table& table) {
    reader_.maybe(key, value, table);
  }

  /// A choice whose default depends on other fields.
  template <class E, class Table>
  void choice(const char* key, E& value, const Table& table, E by_default) {
    value = by_default;
    reader_.maybe(key, value, table);
  }

  /// false, true or a count of at least 2: the integers 0, 1 and the count.
  template <class I>
  void flag_or_count(const char* key, I& value, std::int64_t max) {
    if (reader_.is_boolean(key)) value = reader_.boolean(key) ? 1 : 0;
    else count(key, value, 2, max);
  }

  /// Optionals: `word` ("none", "profile") is the text for an absent value.
  template <class I>
  void count_or(const char* key, std::optional<I>& value, const char* word, std::int64_t min, std::int64_t max) {
    or_word(key, value, word, [&] { return static_cast<I>(reader_.integer(key, {min, max})); });
  }
  void flag_or(const char* key, std::optional<bool>& value, const char* word) {
    or_word(key, value, word, [&] { return reader_.boolean(key); });
  }
  template <class E, class Table>
  void choice_or(const char* key, std::optional<E>& value, const char* word, const Table& table) {
    or_word(key, value, word, [&] { return reader_.enumeration(key, table); });
  }
  void ratio_or(const char* key, std::optional<double>& value, const char* word, Limits<double> limits) {
    or_word(key, value, word, [&] { return reader_.number(key, limits); });
  }
  void size_or(const char* key, std::optional<std::int64_t>& value, const char* word, std::int64_t min, std::int64_t max) {
    or_word(key, value, word, [&] { return reader_.bytes(key, {min, max}); });
  }
  void rate_or(const char* key, std::optional<BytesPerSecond>& value, const char* word, Limits<double> limits, const char*) {
    or_word(key, value, word, [&] { return reader_.quantity<BytesPerSecond>(key, limits); });
  }
  /// A nested object with fields of its own.
  template <class Describe>
  void group(const char* key, Describe describe) {
    if (auto inner = reader_.maybe_object(key)) {
      FieldReader fields(std::move(*inner));
      describe(fields);
      fields.finish();
    }
  }
  /// An array of objects with fields of their own.
  template <class T, class Describe>
  void list(const char* key, std::vector<T>& values, std::int64_t max, Describe describe) {
    if (!reader_.has(key)) return;
    values.clear();
    for (Reader& one : reader_.objects(key)) {
      if (static_cast<std::int64_t>(values.size()) == max) reader_.fail(key, "has too many entries", "at most " + std::to_string(max));
      FieldReader fields(std::move(one));
      describe(fields, values.emplace_back());
      fields.finish();
    }
  }

 private:
  bool present(const char* key, Need need) { return need == Need::required || reader_.has(key); }
  template <class T, class Get>
  void or_word(const char* key, std::optional<T>& value, const char* word, Get get) {
    if (!reader_.has(key)) return;
    if (reader_.is_word(key, word)) value.reset();
    else value = get();
  }
  Reader reader_;
};

class FieldWriter {
 public:
  using Object = nlohmann::ordered_json;
  Object take() { return std::move(object_); }

  template <class I>
  void count(const char* key, const I& value, std::int64_t, std::int64_t, Need = Need::optional) {
    object_[key] = value;
  }
  void ratio(const char* key, double value, double, double) { object_[key] = value; }
  void flag(const char* key, bool value, bool = false) { object_[key] = value; }
  void text(const char* key, const std::string& value) { object_[key] = value; }
  void time(const char* key, Seconds value, double) { object_[key] = quantity_text(value); }
  template <class E, class Table>
  void choice(const char* key, E value, const Table& table) {
    object_[key] = spelled(table, value);
  }
  template <class E, class Table>
  void choice(const char* key, E value, const Table& table, E) {
    choice(key, value, table);
  }

  template <class I>
  void flag_or_count(const char* key, const I& value, std::int64_t) {
    if (value < 2) object_[key] = value == 1;
    else object_[key] = value;
  }

  template <class I>
  void count_or(const char* key, const std::optional<I>& value, const char* word, std::int64_t, std::int64_t) {
    or_word(key, value, word, [](I v) { return v; });
  }
  void flag_or(const char* key, const std::optional<bool>& value, const char* word) {
    or_word(key, value, word, [](bool v) { return v; });
  }
  template <class E, class Table>
  void choice_or(const char* key, const std::optional<E>& value, const char* word, const Table& table) {
    or_word(key, value, word, [&](E v) { return spelled(table, v); });
  }
  void ratio_or(const char* key, const std::optional<double>& value, const char* word, Limits<double>) {
    or_word(key, value, word, [](double v) { return v; });
  }
  void size_or(const char* key, const std::optional<std::int64_t>& value, const char* word, std::int64_t, std::int64_t) {
    or_word(key, value, word, bytes_text);
  }
  void rate_or(const char* key, const std::optional<BytesPerSecond>& value, const char* word, Limits<double>, const char* unit) {
    or_word(key, value, word, [&](BytesPerSecond v) { return quantity_text(v, unit); });
  }
  template <class Describe>
  void group(const char* key, Describe describe) {
    FieldWriter inner;
    describe(inner);
    object_[key] = inner.take();
  }
  template <class T, class Describe>
  void list(const char* key, std::vector<T>& values, std::int64_t, Describe describe) {
    object_[key] = Object::array();
    for (T& value : values) {
      FieldWriter entry;
      describe(entry, value);
      object_[key].push_back(entry.take());
    }
  }

 private:
  template <class T, class Text>
  void or_word(const char* key, const std::optional<T>& value, const char* word, Text as_text) {
    if (value) object_[key] = as_text(*value);
    else object_[key] = word;
  }
  Object object_ = Object::object();
};

}  // namespace stepcast::scenarios
