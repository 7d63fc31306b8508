// Values as bytes, between processes of one build on machines of one kind. Test: tests/unit/launch_test.cpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace stepcast::real {

class PacketWriter {
 public:
  template <class T>
  PacketWriter& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  template <class T>
  PacketWriter& put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(static_cast<std::uint64_t>(values.size()));
    text_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return *this;
  }
  PacketWriter& put_text(std::string_view text) {
    text_.append(text);
    return *this;
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Throws std::runtime_error where there is less than is asked for, or a truth value that is neither.
class PacketReader {
 public:
  explicit PacketReader(std::string_view text) : text_(text) {}
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    if constexpr (std::is_same_v<T, bool>) {
      const auto byte = get<unsigned char>();
      if (byte > 1) throw std::runtime_error("a letter of another process says neither yes nor no");
      return byte == 1;
    } else {
      T value;
      std::memcpy(&value, take(sizeof value), sizeof value);
      return value;
    }
  }
  template <class T>
  std::vector<T> get_all() {
    const auto count = get<std::uint64_t>();
    if (count > text_.size() / sizeof(T)) throw std::runtime_error(kShort);
    std::vector<T> values(static_cast<std::size_t>(count));
    if (count > 0) std::memcpy(values.data(), take(values.size() * sizeof(T)), values.size() * sizeof(T));
    return values;
  }
  [[nodiscard]] std::string rest() const { return std::string(text_); }

 private:
  static constexpr const char* kShort = "a letter of another process is too short";
  const char* take(std::size_t bytes) {
    if (bytes > text_.size()) throw std::runtime_error(kShort);
    const char* begin = text_.data();
    text_.remove_prefix(bytes);
    return begin;
  }
  std::string_view text_;
};

}  // namespace stepcast::real
