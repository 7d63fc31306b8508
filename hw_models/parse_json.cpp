// From text to a JSON document, with what nlohmann's own DOM parser lets pass refused: duplicate keys, deep nesting, zero bytes. Test: tests/unit/strict_json_test.cpp.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast {
namespace {

/// "line 3, column 5" of a byte offset.
std::string place(std::string_view text, std::size_t offset) {
  std::size_t line = 1, column = 1;
  for (const char c : text.substr(0, offset)) {
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
    }
  }
  return fmt::format("line {}, column {}", line, column);
}

/// The library's message without its prefix: "[json...] parse error at line 1, column 2: syntax error ..." keeps what follows the place.
std::string reason(const std::string& message) {
  const auto start = message.find(": ", message.find("column"));
  return printable(start == std::string::npos ? message : message.substr(start + 2), 200);
}

/// Builds the document; returns false from a callback only after throwing would be wrong, so it throws InputError itself.
class Handler final : public nlohmann::json_sax<Json> {
 public:
  Handler(std::string_view text, const std::string& file) : text_(text), file_(file) {}
  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override {
    add(Json(Json::value_t::string))->get_ref<std::string&>() = std::move(value);
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Json& object = *open_.back();
    if (object.contains(name)) throw InputError(file_, printable(pointer() + "/" + pointer_part(name), 200), "duplicate key");
    key_ = name;
    keys_.back() = name;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    throw InputError(file_, place(text_, position > 0 ? position - 1 : 0), reason(error.what()));
  }

 private:
  Json* add(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_array()) {
      keys_.back() = std::to_string(parent.size());
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }
  bool put(Json value) {
    add(std::move(value));
    return true;
  }
  bool open(Json container) {
    Json* added = add(std::move(container));
    if (open_.size() == kMaxJsonDepth) throw InputError(file_, printable(pointer(), 200), fmt::format("nested deeper than {} levels", kMaxJsonDepth));
    open_.push_back(added);
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }
  /// Of the innermost open container.
  [[nodiscard]] std::string pointer() const {
    std::string path;
    for (std::size_t i = 0; i + 1 < keys_.size(); ++i) path.append("/").append(pointer_part(keys_[i]));
    return path;
  }

  std::string_view text_;
  const std::string& file_;
  Json root_;
  std::vector<Json*> open_;
  std::vector<std::string> keys_;  // where in each open container we are
  std::string key_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& file) {
  const std::string shown = printable(file, 400);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) throw InputError(shown, "", "is empty", "a JSON object is expected");
  // The library takes a zero byte for the end of the text.
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) throw InputError(shown, place(text, zero), "zero byte in a text file");
  Handler handler(text, shown);
  Json::sax_parse(text.begin(), text.end(), &handler);
  return handler.take();
}

Json read_json(const std::string& path, std::size_t max_bytes) { return parse_json(read_text_file(path, max_bytes), path); }

}  // namespace stepcast
