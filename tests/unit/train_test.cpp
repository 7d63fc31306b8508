// Training on one rank against PyTorch's numbers, and what a job leaves behind.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/tiny_models.hpp"

namespace stepcast::real {
namespace {

using namespace test;

/// "b3.q.weight" as the reference calls it.
std::string reference_name(const std::string& name, bool gpt) {
  static const std::pair<const char*, const char*> kLlama[] = {
      {"norm1.weight", "norm1"}, {"q.weight", "wq"},           {"k.weight", "wk"},    {"v.weight", "wv"},        {"out.weight", "wo"},
      {"norm2.weight", "norm2"}, {"gate.weight", "w_gate"},    {"up.weight", "w_up"}, {"down.weight", "w_down"}, {"norm.weight", "final_norm"},
      {"head.weight", "head"},   {"embedding.weight", "embed"}};
  static const std::pair<const char*, const char*> kGpt[] = {
      {"norm1.weight", "ln1_w"}, {"norm1.bias", "ln1_b"}, {"qkv.weight", "wqkv"},        {"qkv.bias", "bqkv"},
      {"out.weight", "wo"},      {"out.bias", "bo"},      {"norm2.weight", "ln2_w"},     {"norm2.bias", "ln2_b"},
      {"up.weight", "w_up"},     {"up.bias", "b_up"},     {"down.weight", "w_down"},     {"down.bias", "b_down"},
      {"norm.weight", "lnf_w"},  {"norm.bias", "lnf_b"},  {"embedding.weight", "embed"}, {"positions.weight", "pos"}};
  const bool block = name.front() == 'b' && name.find('.') != name.rfind('.');
  const std::size_t dot = name.find('.');
  const std::string tensor = block ? name.substr(dot + 1) : name, prefix = block ? name.substr(1, dot) : "";
  const auto find = [&](const auto& table) {
    const auto* entry = std::find_if(std::begin(table), std::end(table), [&](const auto& e) { return tensor == e.first; });
    return prefix + (entry == std::end(table) ? tensor : entry->second);
  };
  return gpt ? find(kGpt) : find(kLlama);
}

void compare(const program::StepSpec& spec, const std::string& file, bool gpt) {
  const auto truth = reference(file);
  if (!truth) {
    MESSAGE("skipped: no ../shared/reference/" << file);
    return;
  }
  const JobResult result = train(spec, 6);
  REQUIRE(result.failures.empty());
  for (std::size_t k = 0; k < 6; ++k) {
    CAPTURE(k);
    const auto& step = (*truth)["steps"][k];
    CHECK(result.steps[k].loss == doctest::Approx(step["loss"].get<double>()).epsilon(1e-9));
    CHECK(result.steps[k].grad_norm == doctest::Approx(step["grad_norm_before_clip"].get<double>()).epsilon(1e-9));
  }
  CHECK(result.parameters.size() == (*truth)["final_param_sum"].size());
  for (const ParameterSummary& p : result.parameters) {
    CAPTURE(p.name);
    const std::string name = reference_name(p.name, gpt);
    REQUIRE((*truth)["final_param_sum"].contains(name));
    CHECK(close(p.sum, (*truth)["final_param_sum"][name].get<double>()));
    CHECK(close(p.norm, (*truth)["final_param_norm"][name].get<double>()));
  }
}

TEST_CASE("a tiny Llama trains as PyTorch trains it: losses, gradient norms, final parameters to 1e-9") { compare(tiny_llama(), "tiny_llama.json", false); }
TEST_CASE("a tiny GPT trains as PyTorch trains it: losses, gradient norms, final parameters to 1e-9") { compare(tiny_gpt(), "tiny_gpt.json", true); }

}  // namespace
}  // namespace stepcast::real
