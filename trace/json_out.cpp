// Test: tests/unit/json_out_test.cpp.
#include "trace/json_out.hpp"

#include <cstddef>
#include <ostream>

namespace stepcast::trace {

namespace {

constexpr std::size_t kBufferBytes = 1 << 16;

bool continues(unsigned char byte) { return (byte & 0xC0U) == 0x80; }

/// Length of the UTF-8 sequence at the start of `text`; 0 if there is none (RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0); };
  const unsigned char first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !continues(second)) return 0;
  if (first < 0xE0) return 2;
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || !continues(byte(2))) return 0;
  if (first < 0xF0) return 3;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F) || !continues(byte(3))) return 0;
  return 4;
}

}  // namespace

std::int64_t to_nanoseconds(SimTime time) {
  const std::int64_t picoseconds = time.count();
  const std::int64_t whole = picoseconds / 1000, rest = picoseconds % 1000;
  return whole + (rest >= 500 ? 1 : rest < -500 ? -1 : 0);
}

JsonOut& JsonOut::string(std::string_view text) {
  buffer_.push_back('"');
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) print("\\ufffd");
    else if (length == 1 && (c == '"' || c == '\\')) buffer_.push_back('\\'), buffer_.push_back(c);
    else if (length == 1 && static_cast<unsigned char>(c) < 0x20) print("\\u{:04x}", static_cast<unsigned>(c));
    else buffer_.append(text.data(), text.data() + length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  buffer_.push_back('"');
  return *this;
}

JsonOut& JsonOut::microseconds(std::int64_t nanoseconds) {
  if (nanoseconds < 0) buffer_.push_back('-');
  const std::uint64_t size = nanoseconds < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(nanoseconds) : static_cast<std::uint64_t>(nanoseconds);
  return print("{}.{:03}", size / 1000, size % 1000);
}

JsonOut& JsonOut::next_event() {
  if (buffer_.size() >= kBufferBytes) flush();
  return print("{}", std::exchange(any_event_, true) ? ",\n" : "\n");
}

void JsonOut::flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

}  // namespace stepcast::trace
