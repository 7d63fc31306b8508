// Strict JSON: everything that is refused, with the place named; optional reading; hints. Messages are part of the contract (one line: file, pointer, what, hint).
#include "hw_models/strict_json.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

using namespace stepcast;

namespace {

/// The message of the InputError that `action` throws.
template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const InputError& error) { return error.what(); }
  return "(nothing was refused)";
}

std::string parse_refusal(std::string_view text) {
  return refusal([&] { parse_json(text, "f.json"); });
}

/// What reading of a one-object document with `read` says.
template <class Read>
std::string read_refusal(const char* text, Read read) {
  return refusal([&] {
    const Json json = parse_json(text, "f.json");
    Reader reader(json, "f.json");
    read(reader);
    reader.finish();
  });
}

}  // namespace

TEST_CASE("documents that are refused") {
  CHECK(parse_refusal("") == "f.json: is empty; a JSON object is expected");
  CHECK(parse_refusal(" \n") == "f.json: is empty; a JSON object is expected");
  CHECK(parse_refusal(R"({"a": 1, "b": {"c": 1, "c": 2}})") == "f.json: /b/c: duplicate key");
  CHECK(parse_refusal(R"({"a": [0, {"x/y": 1, "x/y": 2}]})") == "f.json: /a/1/x~1y: duplicate key");
  CHECK(parse_refusal("{\"a\": 1,\n \"b\": NaN}").starts_with("f.json: line 2, column 7: syntax error"));
  CHECK(parse_refusal(R"({"a": Infinity})").find("syntax error") != std::string::npos);
  CHECK(parse_refusal(R"({"a": 1e999})").find("f.json: line 1") == 0);
  CHECK(parse_refusal(R"({"a": 1} x)").find("f.json: line 1, column 10") == 0);
  CHECK(parse_refusal(R"({"a": 1}{"b": 2})").find("f.json: line 1, column 9") == 0);
  CHECK(parse_refusal("{\"a\": \"\xff\"}").find("UTF-8") != std::string::npos);
  CHECK(parse_refusal(std::string_view("{}\0{}", 5)) == "f.json: line 1, column 3: zero byte in a text file");
  CHECK(parse_refusal("{\"a\": 1 // why\n}").find("syntax error") != std::string::npos);
  CHECK(parse_refusal("{\"a\": \"line\nbreak\"}").find('\n') == std::string::npos);
}

TEST_CASE("nesting is limited, however deep it goes") {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK_NOTHROW(parse_json(nested(64), "f.json"));
  CHECK(parse_refusal(nested(65)).find("nested deeper than 64 levels") != std::string::npos);
  CHECK(parse_refusal(std::string(1000000, '[')).find("nested deeper than 64 levels") != std::string::npos);
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"k\":";
  CHECK(parse_refusal(objects).find("nested deeper than 64 levels") != std::string::npos);
}

TEST_CASE("types and ranges") {
  const auto integer = [](const char* text) { return read_refusal(text, [](Reader& r) { r.integer("n", {1, 100}); }); };
  CHECK(integer(R"({"n": 3})") == "(nothing was refused)");
  CHECK(integer(R"({"n": 3.0})") == "(nothing was refused)");
  CHECK(integer(R"({"n": 3.7})") == "f.json: /n: 3.7 is not a whole number");
  CHECK(integer(R"({"n": -1})") == "f.json: /n: -1 is out of range; must be from 1 to 100");
  CHECK(integer(R"({"n": 1e30})") == "f.json: /n: 1e+30 is out of range; must be from 1 to 100");
  CHECK(integer(R"({"n": 18446744073709551615})") == "f.json: /n: 18446744073709551615 is out of range; must be from 1 to 100");
  CHECK(integer(R"({"n": 99999999999999999999999})").find("is out of range") != std::string::npos);
  CHECK(integer(R"({"n": "3"})") == "f.json: /n: expected a whole number, found a text");
  CHECK(integer(R"({"n": null})") == "f.json: /n: expected a whole number, found null");
  CHECK(integer(R"({"n": true})") == "f.json: /n: expected a whole number, found true or false");
  CHECK(integer("{}") == "f.json: /n: is missing");
  CHECK(integer("[1]") == "f.json: expected an object, found an array");
  CHECK(read_refusal(R"({"x": 1.5})", [](Reader& r) { r.number("x", {0, 1}); }) == "f.json: /x: 1.5 is out of range; must be from 0 to 1");
  CHECK(read_refusal(R"({"x": 0})", [](Reader& r) { r.number("x", kPositive); }) == "f.json: /x: 0 is out of range; must be more than 0");
  CHECK(read_refusal(R"({"b": 1})", [](Reader& r) { r.boolean("b"); }) == "f.json: /b: expected true or false, found a number");
  CHECK(read_refusal(R"({"s": {"t": []}})", [](Reader& r) { r.object("s").text("t"); }) == "f.json: /s/t: expected a text, found an array");
}

TEST_CASE("quantities need their unit") {
  const auto time = [](const char* text) { return read_refusal(text, [](Reader& r) { r.quantity<Seconds>("t"); }); };
  CHECK(time(R"({"t": "8 us"})") == "(nothing was refused)");
  CHECK(time(R"({"t": 8})") == "f.json: /t: 8 has no unit; write it as a text with one of ps, ns, us, ms, s");
  CHECK(time(R"({"t": "8"})") == "f.json: /t: \"8\" has no unit (units: ps, ns, us, ms, s)");
  CHECK(time(R"({"t": "-8 us"})") == "f.json: /t: \"-8 us\" is out of range; must be at least 0");
  CHECK(time(R"({"t": "8 GB"})").find("unknown unit") != std::string::npos);
  CHECK(read_refusal(R"({"m": "-1 GiB"})", [](Reader& r) { r.bytes("m"); }).find("is negative") != std::string::npos);
  CHECK(read_refusal(R"({"m": 80})", [](Reader& r) { r.bytes("m"); }).find("has no unit") != std::string::npos);
}

TEST_CASE("unknown keys get the nearest known one as a hint") {
  const auto read = [](Reader& r) {
    std::int64_t layers = 0;
    r.maybe("layers", layers);
    r.maybe("heads", layers);
  };
  CHECK(read_refusal(R"({"layrs": 1})", read) == "f.json: /layrs: unknown key; did you mean \"layers\"?");
  CHECK(read_refusal(R"({"wholly_else": 1})", read) == "f.json: /wholly_else: unknown key");
  CHECK(read_refusal("{\"a\\nb\": 1}", read).find('\n') == std::string::npos);
}

TEST_CASE("enumerations") {
  enum class Colour { red, green };
  constexpr EnumName<Colour> kColours[] = {{Colour::red, "RED"}, {Colour::green, "GREEN"}};
  Colour colour = Colour::red;
  const auto read = [&](Reader& r) { r.maybe("c", colour, kColours); };
  CHECK(read_refusal(R"({"c": "GREEN"})", read) == "(nothing was refused)");
  CHECK(colour == Colour::green);
  CHECK(read_refusal(R"({"c": "GREN"})", read) == "f.json: /c: unknown value \"GREN\"; did you mean \"GREEN\"? one of \"RED\", \"GREEN\"");
  CHECK(read_refusal(R"({"c": 3})", read) == "f.json: /c: expected a text, found a number");
  CHECK(spelled(kColours, Colour::red) == std::string("RED"));
}

TEST_CASE("an absent key leaves the default") {
  const Json json = parse_json("{\"here\": 7}", "f.json");
  Reader reader(json, "f.json");
  std::int32_t here = 1, absent = 2;
  CHECK(reader.maybe("here", here));
  CHECK_FALSE(reader.maybe("absent", absent));
  CHECK(here == 7);
  CHECK(absent == 2);
}

TEST_CASE("a narrow target has its own range") {
  const Json json = parse_json("{\"n\": 3000000000}", "f.json");
  Reader reader(json, "f.json");
  std::int32_t narrow = 0;
  CHECK_THROWS_AS(reader.maybe("n", narrow), InputError);
}

TEST_CASE("files that cannot be read") {
  CHECK(refusal([] { read_json("/"); }) == "/: is a directory; give a file");
  CHECK(refusal([] { read_json("no/such.json"); }) == "no/such.json: cannot be opened: No such file or directory");
  CHECK(refusal([] { read_json("/dev/zero", 1000); }).find("is larger than the limit") != std::string::npos);
  CHECK(refusal([] { read_json("/dev/null"); }) == "/dev/null: is empty; a JSON object is expected");
}

TEST_CASE("edit distance") {
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("same", "same") == 0);
}
