// Escapes, invalid UTF-8 and times in JSON text.
#include "trace/json_out.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>

using namespace stepcast;
using namespace stepcast::trace;

namespace {

std::string json_text(std::string_view text) {
  std::ostringstream out;
  JsonOut json(out);
  json.string(text).flush();
  return out.str();
}

std::string time_text(std::int64_t nanoseconds) {
  std::ostringstream out;
  JsonOut json(out);
  json.microseconds(nanoseconds).flush();
  return out.str();
}

}  // namespace

TEST_CASE("strings are escaped and UTF-8 passes") {
  CHECK(json_text("void f<4>(int)") == "\"void f<4>(int)\"");
  CHECK(json_text("a\"b\\c\n") == "\"a\\\"b\\\\c\\u000a\"");
  CHECK(json_text("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") == "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

TEST_CASE("bytes that are no UTF-8 become replacement characters: lone, cut off, overlong, surrogate, too high") {
  CHECK(json_text("\xff") == "\"\\ufffd\"");
  CHECK(json_text("a\xe2\x82") == "\"a\\ufffd\\ufffd\"");
  CHECK(json_text("\xc0\x80") == "\"\\ufffd\\ufffd\"");
  CHECK(json_text("\xed\xa0\x80") == "\"\\ufffd\\ufffd\\ufffd\"");
  CHECK(json_text("\xf4\x90\x80\x80") == "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

TEST_CASE("any bytes give a string that a strict parser reads") {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes(random() % 12, ' ');
    for (char& c : bytes) c = static_cast<char>(random() % 256);
    REQUIRE(nlohmann::json::parse(json_text(bytes)).is_string());
  }
}

TEST_CASE("times have nanoseconds, rounded to the nearest") {
  CHECK(to_nanoseconds(SimTime(1499)) == 1);
  CHECK(to_nanoseconds(SimTime(1500)) == 2);
  CHECK(to_nanoseconds(SimTime(-1600)) == -2);
  CHECK(time_text(0) == "0.000");
  CHECK(time_text(1'234'005) == "1234.005");
  CHECK(time_text(-5) == "-0.005");
  CHECK(time_text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775.808");
}
