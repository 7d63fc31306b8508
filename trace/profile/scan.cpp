// Byte loops over a text that ends in '\0'. Test: tests/unit/profile_scan_test.cpp.
#include "trace/profile/scan.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace stepcast::trace::profile {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Scan at_nul(const Cursor& in) { return in.at == in.end ? Scan::more : Scan::broken; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// At '{' or '[': to behind its match.
Scan skip_container(Cursor& in) {
  int depth = 0;
  while (true) {
    switch (*in.at) {
      case '{':
      case '[': ++depth; break;
      case '}':
      case ']':
        if (--depth == 0) {
          ++in.at;
          return Scan::ok;
        }
        break;
      case '"': {
        std::string_view ignored;
        if (const Scan scan = scan_string(in, ignored); scan != Scan::ok) return scan;
        continue;
      }
      case '\0': return at_nul(in);
      default: break;
    }
    ++in.at;
  }
}

bool ends_scalar(char c) { return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\0'; }

/// Text with an exponent: not exact, but no profiler writes it for times.
std::optional<std::int64_t> thousandths_of_power(std::string_view text) {
  if (text.size() > 64) return {};
  const std::string copy(text);
  char* end = nullptr;
  const long double value = std::strtold(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || !std::isfinite(value) || std::fabs(value) > 9e15L) return {};
  return std::llround(value * 1000);
}

void append_code_point(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  if (code < 0x10000) return put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
}

std::optional<std::uint32_t> hex4(std::string_view text) {
  std::uint32_t code = 0;
  if (text.size() < 4) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, code, 16);
  return error == std::errc() && end == text.data() + 4 ? std::optional(code) : std::nullopt;
}

/// At the byte after a backslash; returns how many bytes of it were used, 0 for no valid escape.
std::size_t append_escape(std::string& out, std::string_view text) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  if (text.empty()) return 0;
  if (const auto at = kLetters.find(text[0]); at != std::string_view::npos) return out += kMeanings[at], 1;
  if (text[0] != 'u') return 0;
  const auto high = hex4(text.substr(1));
  if (!high) return 0;
  const bool pair = *high >= 0xd800 && *high < 0xdc00 && text.substr(5, 2) == "\\u";
  const auto low = pair ? hex4(text.substr(7)) : std::nullopt;
  if (low && *low >= 0xdc00 && *low < 0xe000) return append_code_point(out, 0x10000 + ((*high - 0xd800) << 10) + (*low - 0xdc00)), 11;
  const bool half = *high >= 0xd800 && *high < 0xe000;
  append_code_point(out, half ? 0xfffd : *high);
  return 5;
}

}  // namespace

Scan scan_string(Cursor& in, std::string_view& out) {
  const char* const begin = ++in.at;
  while (true) {
    const char c = *in.at;
    if (c == '"') break;
    if (c == '\\') {
      if (in.at + 1 >= in.end) return in.at = in.end, Scan::more;
      ++in.at;
    } else if (c == '\0' && in.at == in.end) {
      return Scan::more;
    }
    ++in.at;
  }
  out = {begin, static_cast<std::size_t>(in.at - begin)};
  ++in.at;
  return Scan::ok;
}

Scan scan_value(Cursor& in, Value& out) {
  const char* const begin = in.at;
  if (*begin == '"') {
    out.kind = Value::Kind::string;
    return scan_string(in, out.text);
  }
  const bool container = *begin == '{' || *begin == '[';
  out.kind = container ? Value::Kind::container : Value::Kind::scalar;
  if (container) {
    if (const Scan scan = skip_container(in); scan != Scan::ok) return scan;
  } else {
    while (!ends_scalar(*in.at)) ++in.at;
    if (*in.at == '\0') return at_nul(in);
    if (in.at == begin) return Scan::broken;
  }
  out.text = {begin, static_cast<std::size_t>(in.at - begin)};
  return Scan::ok;
}

std::optional<std::int64_t> integer_of(const Value& value) {
  if (value.kind != Value::Kind::scalar && value.kind != Value::Kind::string) return {};
  std::int64_t number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [last, error] = std::from_chars(value.text.data(), end, number);
  return error == std::errc() && last == end && !value.text.empty() ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> thousandths_of(const Value& value) {
  if (value.kind != Value::Kind::scalar && value.kind != Value::Kind::string) return {};
  const char* at = value.text.data();
  const char* const end = at + value.text.size();
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  if (at == end || !is_digit(*at)) return {};
  std::int64_t number = 0;
  for (; at != end && is_digit(*at); ++at) {
    if (number > (kMost - 9) / 10) return {};
    number = number * 10 + (*at - '0');
  }
  int decimals = 0;
  bool round_up = false;
  if (at != end && *at == '.') {
    for (++at; at != end && is_digit(*at); ++at, ++decimals) {
      if (decimals == 3) round_up = *at >= '5';
      if (decimals >= 3) continue;
      if (number > (kMost - 9) / 10) return {};
      number = number * 10 + (*at - '0');
    }
  }
  if (at != end) return *at == 'e' || *at == 'E' ? thousandths_of_power(value.text) : std::nullopt;
  for (; decimals < 3; ++decimals) {
    if (number > kMost / 10) return {};
    number *= 10;
  }
  number += round_up ? 1 : 0;
  return negative ? -number : number;
}

std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t used = text[i] == '\\' ? append_escape(out, text.substr(i + 1)) : 0;
    if (used == 0) out += text[i];
    i += used;
  }
  return out;
}

}  // namespace stepcast::trace::profile
