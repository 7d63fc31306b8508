// Facts about sources: matching, order, and a strict file. calibration/source_facts.hpp.
#include "calibration/source_facts.hpp"

#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "support/text.hpp"

using namespace stepcast;
using calibration::Given, calibration::Run, calibration::SourceFacts, calibration::Sources;

namespace {

constexpr const char* kFile = R"({"schema": "stepcast.sources/1",
  "facts": [{"when": {"gpu": "a100"}, "set": {"/cluster/gpu": "x"}, "source": "s", "kind": "assumed"},
            {"when": {"gpu": ["a100-40", "a100-20"]}, "set": {"/cluster/gpu": "y"}, "source": "s", "kind": "stated"}],
  "sources": [{"name": "one", "when": {"id": "foo-"}, "memory": {"quantity": "active", "source": "s"},
               "facts": [{"set": {"vocab": 10}, "source": "s", "kind": "inferred"}, {"set": {"vocab": 20, "seq_len": 5}, "source": "s", "kind": "inferred"}]},
              {"name": "two", "when": {"source": "README"}, "facts": [], "mfu": {"parameters": "nominal", "count": 7e9, "attention": 0, "source": "s"}}]})";

Run run_with(std::initializer_list<std::pair<const char*, const char*>> cells) {
  Run run;
  for (const auto& [column, text] : cells) run.cells.emplace(column, calibration::make_cell(column, text, Given::stated));
  return run;
}

std::string refusal(std::string text, const std::string& old_part, const std::string& new_part) {
  text.replace(text.find(old_part), old_part.size(), new_part);
  try {
    const Sources sources(text, "s.json");
  } catch (const InputError& error) { return error.what(); }
  return "accepted";
}

using stepcast::test::has;

}  // namespace

TEST_CASE("facts of all tables come first, then those of the first source that matches; later facts override, cells do not") {
  const Sources sources(kFile, "s.json");
  const Run run = run_with({{"id", "foo-1"}, {"gpu", "a100-40gb"}, {"seq_len", "7"}, {"source", "a README"}});
  const SourceFacts facts = sources.of(run);
  CHECK(facts.name == "one");
  CHECK(facts.known);
  REQUIRE(facts.facts.size() == 4);
  CHECK(facts.facts[1]->settings[0].second == "y");
  CHECK(facts.memory == calibration::MemoryQuantity::active);
  const Run whole = calibration::completed(run, facts);
  CHECK(whole.count("vocab") == 20);
  CHECK(whole.find("vocab")->given == Given::fact);
  CHECK(whole.count("seq_len") == 7);
  CHECK(sources.of(run_with({{"id", "a-foo-1"}, {"source", "a README"}})).name == "two");
  const SourceFacts unknown = sources.of(run_with({{"id", "b"}, {"source", "elsewhere"}}));
  CHECK(!unknown.known);
  CHECK(unknown.name == "elsewhere");
}

TEST_CASE("the file is strict") {
  CHECK(has(refusal(kFile, "\"kind\": \"assumed\"", "\"kind\": \"guessed\""), "/facts/0/kind"));
  CHECK(has(refusal(kFile, "{\"gpu\": \"a100\"}", "{\"card\": \"a100\"}"), "/facts/0: \"card\" is no column"));
  CHECK(has(refusal(kFile, "{\"gpu\": \"a100\"}", "{}"), "at least one column"));
  CHECK(has(refusal(kFile, "\"vocab\": 10", "\"vocab\": \"ten\""), "/sources/0/facts/0: \"vocab\" is not a number"));
  CHECK(has(refusal(kFile, "\"vocab\": 10", "\"words\": 10"), "is in no known column"));
  CHECK(has(refusal(kFile, "\"count\": 7e9, ", ""), "/sources/1/mfu/count"));
  CHECK(has(refusal(kFile, "\"source\": \"s\", ", ""), "/facts/0/source"));
  CHECK(has(refusal(kFile, "sources/1\"", "sources/9\""), "schema"));
}

TEST_CASE("the compiled-in file reads, and every fact says where it is from") {
  const Sources sources;
  CHECK(sources.names().size() >= 10);
  for (const calibration::Fact* fact : sources.all()) {
    CHECK(fact->source.size() > 8);
    CHECK(fact->settings.size() + fact->cells.size() > 0);
  }
}
