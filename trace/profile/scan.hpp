// Scans JSON text in a buffer without building anything, and leniently: what real profiles hold is not always JSON (NaN, trailing commas, cut ends).
// The byte after the text must be '\0'. Private to trace/profile. Test: tests/unit/profile_scan_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast::trace::profile {

enum class Scan : std::uint8_t {
  ok,
  more,   // the text ended within the value
  broken  // no continuation can make this a value
};

struct Cursor {
  const char* at;
  const char* end;  // *end == '\0'
};

/// A value as it stands in the text: a string without its quotes and with its escapes, a number, a word, or a whole object or array.
struct Value {
  enum class Kind : std::uint8_t { absent, string, scalar, container };
  std::string_view text;
  Kind kind = Kind::absent;
};

inline void skip_space(Cursor& in) {
  while (*in.at == ' ' || *in.at == '\n' || *in.at == '\t' || *in.at == '\r') ++in.at;
}
/// At the opening quote; `out` is what stands between the quotes.
Scan scan_string(Cursor& in, std::string_view& out);
/// At the first byte of any value. Containers are only matched for nesting and strings.
Scan scan_value(Cursor& in, Value& out);

/// Calls member(cursor, key) -> Scan at each value of the object whose '{' is next; a comma before '}' is let pass.
template <class Member>
Scan scan_object(Cursor& in, Member member);

/// `value` as a whole number; nothing where it is none or does not fit. Strings of digits count.
std::optional<std::int64_t> integer_of(const Value& value);
/// Decimal text in thousandths, exactly: "12.345" -> 12345; more decimals are rounded, halves away from zero.
std::optional<std::int64_t> thousandths_of(const Value& value);
/// A string's text with its escapes resolved; what is no valid escape stays as it stands.
std::string unescaped(std::string_view text);

template <class Member>
Scan scan_object(Cursor& in, Member member) {
  ++in.at;
  while (true) {
    skip_space(in);
    while (*in.at == ',') {
      ++in.at;
      skip_space(in);
    }
    if (in.at == in.end) return Scan::more;
    if (*in.at == '}') break;
    if (*in.at != '"') return Scan::broken;
    std::string_view key;
    if (const Scan scan = scan_string(in, key); scan != Scan::ok) return scan;
    skip_space(in);
    if (in.at == in.end) return Scan::more;
    if (*in.at != ':') return Scan::broken;
    ++in.at;
    skip_space(in);
    if (const Scan scan = member(in, key); scan != Scan::ok) return scan;
  }
  ++in.at;
  return Scan::ok;
}

}  // namespace stepcast::trace::profile
