// The text form against goldens. On a wanted change run the test with STEPCAST_UPDATE_GOLDEN=1 in the environment and read the diff.
#include "program/text.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "program/build.hpp"
#include "support/paths.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

std::string text_of(const Program& program) {
  std::ostringstream out;
  write_text(program, out);
  return out.str();
}

/// Compares line by line, so that a failure names the first line that differs.
void compare_with_golden(const Program& program, const std::string& name) {
  const std::string path = stepcast::test::source_dir() + "/tests/golden/" + name;
  const std::string text = text_of(program);
  if (std::getenv("STEPCAST_UPDATE_GOLDEN")) std::ofstream(path) << text;
  std::ifstream golden(path);
  REQUIRE(golden.good());
  std::istringstream actual(text);
  std::string wanted, got;
  int line = 0;
  while (std::getline(golden, wanted)) {
    ++line;
    REQUIRE_MESSAGE(std::getline(actual, got), "ends before line ", line);
    REQUIRE_MESSAGE(got == wanted, "line ", line, " is '", got, "', golden '", wanted, "'");
  }
  CHECK_FALSE(std::getline(actual, got));
}

/// Two blocks of a model that fits on a page: h = 64, T = 32, 4 ranks.
StepSpec tiny() {
  StepSpec spec;
  spec.model.hidden = 64, spec.model.layers = 2, spec.model.heads = 2, spec.model.kv_heads = 2, spec.model.head_dim = 32, spec.model.ffn = 128,
  spec.model.vocab = 256;
  spec.batch = {.micro_batch = 2, .grad_accum = 1, .seq_len = 16};
  spec.world = {.ranks_per_node = 4, .nodes = 1};
  return spec;
}

TEST_CASE("golden: tiny Llama, eager, FULL_SHARD, BACKWARD_PRE") { compare_with_golden(build_program(tiny(), 1), "program_llama_tiny.txt"); }

TEST_CASE("golden: tiny Llama, fixed costs") {
  StepSpec spec = tiny();
  spec.kernels.set = KernelSet::fixed;
  compare_with_golden(build_program(spec, 3), "program_fixed_tiny.txt");
}

TEST_CASE("golden: tiny GPT, compiled, full recomputation, fp32 reduction, POST") {
  StepSpec spec = tiny();
  const ModelShape llama = spec.model;
  spec.model = test::gpt(llama.hidden, llama.layers, llama.heads, llama.vocab, 16, true);
  spec.kernels.set = KernelSet::pytorch_compile;
  spec.recompute.mode = RecomputeMode::full;
  spec.precision.reduce = hw::Dtype::fp32;
  spec.policy.backward_prefetch = BackwardPrefetch::post;
  compare_with_golden(build_program(spec, 1), "program_gpt_tiny.txt");
}

TEST_CASE("equal programs have equal texts, different ones different texts") {
  StepSpec other = tiny();
  other.policy.forward_prefetch = true;
  CHECK(text_of(build_program(tiny(), 2)) == text_of(build_program(tiny(), 2)));
  CHECK(text_of(build_program(tiny(), 2)) != text_of(build_program(other, 2)));
}

}  // namespace
}  // namespace stepcast::program
