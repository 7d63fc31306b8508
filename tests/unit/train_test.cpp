// Training on one rank against PyTorch's numbers, and what a job leaves behind.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

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

/// Greatest difference of a step's loss from that in fp64.
double loss_error(const program::Precision& precision, std::int32_t ranks) {
  program::StepSpec spec = tiny_llama();
  const JobResult exact = train(spec, 6);
  spec.precision = precision;
  spread(spec, ranks);
  const JobResult result = train(spec, 6);
  REQUIRE(result.failures.empty());
  double error = 0;
  for (std::size_t k = 0; k < 6; ++k) error = std::max(error, std::abs(result.steps[k].loss - exact.steps[k].loss));
  return error;
}

TEST_CASE("narrower types stay near: fp32 to 1e-5, bf16 with fp32 master parameters to four roundings of the loss") {
  constexpr hw::Dtype kBf16 = hw::Dtype::bf16, kFp32 = hw::Dtype::fp32;
  CHECK(loss_error({kFp32, kFp32, kFp32}, 1) < 1e-5);
  CHECK(loss_error({kFp32, kFp32, kFp32}, 4) < 1e-5);
  const double bf16 = loss_error({kBf16, kFp32, kFp32}, 2);
  CHECK(bf16 < 4.3 * 0x1p-7);  // the loss is 4.3, a rounding 2^-9 of it
  CHECK(bf16 > 1e-6);          // it is bf16
}

TEST_CASE("a loss that is not a number ends the job on all ranks, with one line per cause") {
  program::StepSpec spec = tiny_llama();
  spread(spec, 4);
  JobSettings settings = closed_form(spec);
  settings.training.hyper.learning_rate = 1e300;
  const JobResult result = train_on_host(program::build_program(spec, 5), settings);
  REQUIRE_FALSE(result.failures.empty());
  for (const std::string& cause : result.failures) {
    CAPTURE(cause);
    CHECK(cause.starts_with("rank "));
    CHECK(cause.find("the loss is not a finite number in step") != std::string::npos);
    CHECK(cause.find('\n') == std::string::npos);
  }
  CHECK_FALSE(result.out_of_memory);
}

TEST_CASE("a job whose deadline is over ends at once, wherever its ranks are") {
  program::StepSpec spec = tiny_llama();
  spread(spec, 4);
  JobSettings settings = closed_form(spec);
  settings.deadline_s = 0;
  const JobResult result = train_on_host(program::build_program(spec, 200), settings);
  CHECK(result.failures == std::vector<std::string>{"no kernel of any rank has ended for 0 s"});
}

TEST_CASE("a kernel that never returns ends the job within its deadline, by name of the rank; the steps that all ranks had done are kept") {
  program::StepSpec spec = tiny_llama();
  spread(spec, 2);
  JobSettings settings = closed_form(spec);
  const auto whole = train_on_host(program::build_program(spec, 3), settings);
  settings.deadline_s = 0.3;
  const auto over = std::make_shared<std::atomic<bool>>(false);
  settings.on_step = [over](std::int32_t rank, std::int32_t step) {
    while (rank == 1 && step == 2 && !over->load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto begin = std::chrono::steady_clock::now();
  const JobResult result = train_on_host(program::build_program(spec, 6), settings);
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK(result.failures == std::vector<std::string>{"no kernel of any rank has ended for 0.3 s", "a kernel does not return; left behind: rank 1"});
  CHECK(took < 30);
  REQUIRE(result.steps.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(result.steps[i].loss == whole.steps[i].loss);
  over->store(true);
}

TEST_CASE("a pool that is too small ends the job as out of memory, with what asked") {
  const program::StepSpec spec = tiny_llama();
  JobSettings settings = closed_form(spec);
  settings.memory.pool_bytes = 3 << 20;
  const JobResult result = train_on_host(program::build_program(spec, 2), settings);
  CHECK(result.out_of_memory);
  REQUIRE(result.failures.size() == 1);
  CHECK(result.failures.front().starts_with("rank 0: out of memory: no room for \""));
}

TEST_CASE("the trace of a run: every step, kernels of all streams, memory that comes back to where it was") {
  program::StepSpec spec = tiny_llama();
  spread(spec, 2);
  const JobResult result = train(spec, 3);
  REQUIRE(result.failures.empty());
  CHECK(result.trace.world_size == 2);
  REQUIRE(result.trace.steps.size() == 3);
  const auto& slices = result.trace.ranks[0].slices;
  const auto count = [&](trace::Category category) {
    return std::count_if(slices.begin(), slices.end(), [&](const trace::Slice& s) { return s.category == category; });
  };
  CHECK(count(trace::Category::collective) == 3 * 12);  // gathers of the root and three blocks, the blocks once more, four reduce-scatters, one norm
  CHECK(count(trace::Category::kernel) > 3 * 100);
  for (const trace::Slice& s : slices) CHECK(s.end >= s.begin);
  const auto& memory = result.trace.ranks[0].memory;
  for (std::size_t i = 1; i < memory.size(); ++i)
    CHECK(memory[i].delta == memory[i].allocated - memory[i - 1].allocated);  // blocks as handed out, not as asked for
  CHECK(result.trace.steps[2].device_end > result.trace.steps[1].device_end);
  CHECK(result.memory.allocated > 0);
}

}  // namespace
}  // namespace stepcast::real
