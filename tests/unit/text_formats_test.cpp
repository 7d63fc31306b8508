// YAML and TOML as JSON: types of scalars, what is refused with its line. docs/import.md.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "scenarios/import/text_formats.hpp"
#include "support/text.hpp"

using namespace stepcast;
using scenarios::parse_toml, scenarios::parse_yaml;

namespace {

template <class Action>
std::string message(const Action& action) {
  try {
    action();
  } catch (const InputError& error) { return error.what(); }
  return "";
}

using stepcast::test::has;

}  // namespace

TEST_CASE("scalars of YAML are what they look like, and quoted ones are texts") {
  const Json json = parse_yaml("a: 1\nb: 2.5\nc: true\nd: no\ne: 'no'\nf: null\ng: text\nh: 1e3\ni: [1, two]\nj: {k: -3}\nl:\n- x\n- 1_000\n", "f.yaml");
  CHECK(json ==
        Json::parse(
            R"({"a": 1, "b": 2.5, "c": true, "d": false, "e": "no", "f": null, "g": "text", "h": 1000.0, "i": [1, "two"], "j": {"k": -3}, "l": ["x", 1000]})"));
  CHECK(parse_yaml("", "f.yaml").is_null());
}

TEST_CASE("YAML that is malformed, ambiguous or endless is refused with its line") {
  CHECK(has(message([] { parse_yaml("a: 1\na: 2\n", "f.yaml"); }), "f.yaml: line 2: the key \"a\" is given twice"));
  CHECK(has(message([] { parse_yaml("a: [1\nb: 2\n", "f.yaml"); }), "f.yaml: line "));
  CHECK(has(message([] { parse_yaml("a: &x [1]\nb: *x\n", "f.yaml"); }), "line 2: aliases are not supported"));
  CHECK(has(message([] { parse_yaml("a: 1\n---\nb: 2\n", "f.yaml"); }), "several documents"));
  CHECK(has(message([] { parse_yaml(std::string(1000, '['), "f.yaml"); }), "nested too deep"));
  CHECK(has(message([] { parse_yaml("a: \xff\n", "f.yaml"); }), "f.yaml"));
}

TEST_CASE("TOML") {
  const Json json = parse_toml("a = 1\nb = 2.5\n[t]\nc = true\nd = \"x\"\ne = [1, 2]\n[t.u]\nf = \"y\"\n", "f.toml");
  CHECK(json == Json::parse(R"({"a": 1, "b": 2.5, "t": {"c": true, "d": "x", "e": [1, 2], "u": {"f": "y"}}})"));
  CHECK(has(message([] { parse_toml("a = 1\na = 2\n", "f.toml"); }), "f.toml"));
  CHECK(has(message([] { parse_toml("a = \n", "f.toml"); }), "f.toml"));
  CHECK(has(message([] { parse_toml("a = inf\n", "f.toml"); }), "infinity"));
  CHECK(has(message([] { parse_toml("a = " + std::string(1000, '['), "f.toml"); }), "nested too deep"));
}
