// docs/scenario.md and the format have the same keys: each key of the resolved JSON, and each spelling of an enum, is in its section of the page.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "hw_models/text_file.hpp"
#include "scenarios/names.hpp"
#include "scenarios/presets.hpp"
#include "scenarios/scenario.hpp"
#include "support/paths.hpp"

using namespace stepcast;
using namespace stepcast::scenarios;

namespace {

std::string page() { return read_text_file(test::source_dir() + "/docs/scenario.md", 1 << 20); }

/// The text under "## name", up to the next heading.
std::string section(const std::string& text, const std::string& name) {
  const auto start = text.find("\n## " + name + "\n");
  REQUIRE_MESSAGE(start != std::string::npos, "no section " << name);
  return text.substr(start, text.find("\n## ", start + 1) - start);
}

bool mentions(const std::string& text, const std::string& word) { return text.find("`" + word + "`") != std::string::npos; }

template <class Table>
void check_spellings(const std::string& text, const Table& table) {
  for (const auto& entry : table) {
    CAPTURE(entry.name);
    CHECK(mentions(text, entry.name));
  }
}

}  // namespace

TEST_CASE("every key is on the page, in its section") {
  const std::string text = page();
  Scenario scenario = read_scenario("7b-32xa100");
  scenario.fixed_costs.emplace();
  const nlohmann::ordered_json json = to_json(scenario);
  for (const auto& [key, value] : json.items()) {
    CAPTURE(key);
    CHECK(mentions(section(text, "Top level"), key));
    if (!value.is_object()) continue;
    const std::string own = section(text, key);
    for (const auto& [name, inner] : value.items()) {
      CAPTURE(name);
      CHECK(mentions(own, name));
      if (!inner.is_object()) continue;
      for (const auto& [part, flag] : inner.items()) CHECK_MESSAGE(mentions(own, part), part);
    }
  }
}

TEST_CASE("every spelling is on the page") {
  const std::string text = page();
  check_spellings(section(text, "model"), kBlockStyles);
  check_spellings(section(text, "model"), kPositions);
  check_spellings(section(text, "policy"), kFrameworks);
  check_spellings(section(text, "policy"), kShardings);
  check_spellings(section(text, "policy"), kBackwardPrefetches);
  check_spellings(section(text, "policy"), kWraps);
  check_spellings(section(text, "policy"), kReleases);
  check_spellings(section(text, "precision"), kDtypes);
  check_spellings(section(text, "precision"), kMatmuls);
  check_spellings(section(text, "recompute"), kRecomputeModes);
  check_spellings(section(text, "recompute"), kRecomputeOps);
  check_spellings(section(text, "recompute"), kNestings);
  check_spellings(section(text, "kernels"), kKernelSets);
  check_spellings(section(text, "kernels"), kAttentions);
  check_spellings(section(text, "kernels"), kLosses);
  check_spellings(section(text, "optimizer"), kOptimizerImpls);
  check_spellings(section(text, "cluster"), kNvLinks);
  check_spellings(section(text, "cluster"), kFabrics);
  check_spellings(section(text, "run"), kRanks);
  check_spellings(section(text, "run"), kFlopsConventions);
  for (const std::string& name : preset_names()) CHECK_MESSAGE(mentions(section(text, "model"), name), name);
  for (const std::string& name : hw::node_names()) CHECK_MESSAGE(mentions(section(text, "cluster"), name), name);
  for (const std::string& name : hw::gpu_names()) CHECK_MESSAGE(mentions(section(text, "cluster"), name), name);
}
