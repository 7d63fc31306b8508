// Model presets give the parameter counts that their sources print; so do the Hugging Face configs of the same models, where those files are at hand.
#include "scenarios/presets.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "hw_models/text_file.hpp"
#include "program/model.hpp"
#include "scenarios/hf_config.hpp"
#include "support/paths.hpp"

using namespace stepcast;
using namespace stepcast::scenarios;

TEST_CASE("presets have their published size") {
  // Per model: all parameters, and those of one block.
  const std::map<std::string, std::pair<std::int64_t, std::int64_t>> expected = {
      {"llama-2-7b", {6738415616, 202383360}},      {"llama-3-8b", {8030261248, 218112000}}, {"llama-3-70b", {70553706496, 855654400}},
      {"mistral-7b-v0.1", {7241732096, 218112000}}, {"qwen2.5-7b", {7615616512, 233057792}}, {"phi-3-mini-4k", {3821079552, 113252352}},
      {"gpt2-xl", {1557611200, 30740800}},          {"mpt-7b", {6658859008, 201379840}},     {"mixtral-8x7b-v0.1", {46702792704, 1451270144}},
      {"gemma-2-9b", {9241705984, 198195200}},      {"falcon-7b", {6921720704, 207070080}}};
  CHECK(preset_names().size() == expected.size());
  for (const auto& [name, counts] : expected) {
    CAPTURE(name);
    const Preset found = preset(name);
    CHECK(found.parameters == counts.first);
    CHECK(program::parameters(found.model) == counts.first);
    CHECK(program::parameters_per_block(found.model) == counts.second);
    CHECK_FALSE(found.source.empty());
  }
}

TEST_CASE("a llama-2-7b by hand") {
  // h = 4096, f = 11008: attention 4 h^2, feed-forward 3 h f, two norms of h; 32 blocks, embedding and head of 32000 h, final norm.
  const std::int64_t h = 4096, block = 4 * h * h + 3 * h * 11008 + 2 * h;
  CHECK(block == 202383360);
  CHECK(32 * block + 2 * 32000 * h + h == program::parameters(preset("llama-2-7b").model));
}

TEST_CASE("Hugging Face configs of public models import to the presets") {
  const std::string folder = test::source_dir() + "/../shared/configs/models/";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: no folder of model configurations beside the source tree");
    return;
  }
  for (const std::string& name : preset_names()) {
    CAPTURE(name);
    const ImportedModel model = import_hf_config(read_text_file(folder + name + ".json", 1 << 20), name);
    CHECK(model.shape == preset(name).model);
    CHECK(program::parameters(model.shape) == preset(name).parameters);
  }
}
