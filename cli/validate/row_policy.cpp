// Columns of the framework, its sharding and prefetch, precision and kernels. See row_scenario.hpp.
#include <cstdlib>
#include <limits>

#include "cli/validate/row_scenario.hpp"

namespace stepcast::cli {
namespace {

using calibration::Cell;
using calibration::Run;

struct FrameworkPolicy {
  const char* framework;
  const char* sharding;  // null: by the sharding column
  const char* note;
};

/// "ZeRO-1 inside groups of 8": 8; without such words all ranks are one group.
std::int64_t group_of(const std::string& sharding) {
  const std::string words = "inside groups of ";
  const std::size_t at = sharding.find(words);
  const std::int64_t group = at == std::string::npos ? 0 : std::strtoll(sharding.c_str() + at + words.size(), nullptr, 10);
  return group > 0 ? group : std::numeric_limits<std::int64_t>::max();
}

/// By framework in words, else by sharding in words ("ZeRO-3"). One rank gathers and reduces nothing; where hooks of its parameters step, they have no flat parameter.
FrameworkPolicy framework_of(const Run& run, bool in_backward) {
  const std::string words = lower(run.text("framework")), sharding = lower(run.text("sharding")), all = words + " " + sharding;
  const bool alone = run.count("n_gpus") == 1 && !contains(words, "fsdp");
  if (alone) return in_backward ? FrameworkPolicy{"ddp", "NO_SHARD", ""} : FrameworkPolicy{"fsdp1", "FULL_SHARD", ""};
  if (contains(words, "fsdp2")) return {"fsdp2", nullptr, ""};
  if (contains(words, "fsdp1")) return {"fsdp1", nullptr, ""};
  const bool all_ranks = group_of(sharding) >= run.count("n_gpus").value_or(0), first_stage = contains(all, "zero1") || contains(all, "zero-1");
  if (!all_ranks && !first_stage) throw NotExpressible("ZeRO-2 or 3 inside groups of ranks");
  if (contains(all, "zero3") || contains(all, "zero-3")) return {"zero3", "FULL_SHARD", ""};
  if (contains(all, "zero2") || contains(all, "zero-2")) return {"zero2", "FULL_SHARD", ""};
  if (contains(all, "zero1") || contains(all, "zero-1")) return {"zero1", "FULL_SHARD", ""};
  if (contains(all, "ddp")) return {"ddp", "NO_SHARD", ""};
  if (contains(all, "fsdp") || contains(sharding, "full_shard") || contains(sharding, "hybrid_shard")) return {"fsdp1", nullptr, "FSDP taken as FSDP1"};
  throw NotExpressible("the framework is not modelled: " + (words.empty() ? run.text("sharding") : run.text("framework")));
}

std::string sharding_of(const Run& run) {
  const std::string words = run.text("sharding");
  for (const char* known : {"_HYBRID_SHARD_ZERO2", "HYBRID_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "FULL_SHARD"}) {
    if (contains(words, known)) return known;
  }
  return "FULL_SHARD";
}

/// "optimizer to CPU", "parameters to CPU", both, or "CPU" alone, which under FSDP can only be parameters, gradients and optimizer together.
const char* offload_of(const std::string& words, const std::string& framework) {
  const bool optimizer = contains(words, "optimizer to cpu"),
             parameters = contains(words, "parameters to cpu") || contains(words, "parameters and optimizer to cpu");
  const bool fsdp = framework == "fsdp1" || framework == "fsdp2", zero = framework.starts_with("zero");
  if (fsdp && (parameters || words.starts_with("cpu"))) return "parameters";
  if (framework == "zero3" && parameters && optimizer) return "parameters";
  return zero && optimizer && !parameters ? "optimizer" : nullptr;
}

void put_offload(const Run& run, Settings& settings) {
  const Cell* cell = run.find("offload");
  const std::string words = cell ? lower(cell->text) : "none";
  if (words.empty() || words == "none") return;
  const char* offload = offload_of(words, settings.find("/policy/framework")->get<std::string>());
  if (!offload) throw NotExpressible("offload: " + words);
  settings.put("/policy/cpu_offload", offload, weight_of(*cell));
}

void put_flag(const Run& run, const char* column, const char* pointer, Settings& settings) {
  const Cell* cell = run.find(column);
  if (cell && (cell->text == "True" || cell->text == "False")) settings.put(pointer, cell->text == "True", weight_of(*cell));
}

/// "bf16", "BF_16", "amp_bf16", "bf16 params, fp32 reduce" begin with or contain the type of the computation.
const char* dtype_in(const std::string& words) {
  const std::string text = lower(words);
  if (contains(text, "bf16") || contains(text, "bf_16")) return "bf16";
  if (contains(text, "fp16")) return "fp16";
  return contains(text, "fp32") ? "fp32" : nullptr;
}

/// Megatron's "FP8" and Composer's "amp_fp8" are Transformer Engine's delayed scaling, "FP8-CS" its current scaling; "float8" is torchao's, with a scale per tensor or
/// ("rowwise") per row.
void put_matmul(const Cell& precision, Settings& settings) {
  const std::string words = lower(precision.text);
  const bool torchao = contains(words, "float8");
  if (!torchao && !contains(words, "fp8")) return;
  const bool rowwise = contains(words, "rowwise"), tensorwise = torchao || contains(words, "fp8-cs");
  settings.put("/precision/matmul", rowwise ? "fp8-rowwise" : tensorwise ? "fp8-tensorwise" : "fp8-delayed", weight_of(precision));
  if (torchao && !rowwise && contains(words, "all-gather") && *settings.find("/policy/framework") == "fsdp2")
    settings.put("/precision/fp8_all_gather", true, weight_of(precision));
}

}  // namespace

void put_policy(const Run& run, Settings& settings, Notes& notes) {
  const nlohmann::json* in_backward = settings.find("/optimizer/in_backward");
  const FrameworkPolicy framework = framework_of(run, in_backward && *in_backward == true);
  settings.put("/policy/framework", framework.framework, Weight::stated);
  settings.put("/policy/sharding", framework.sharding ? framework.sharding : sharding_of(run), Weight::stated);
  if (*framework.note) notes.emplace_back(framework.note);
  put_offload(run, settings);
  const std::int64_t group = group_of(run.text("sharding"));
  if (framework.framework == std::string("zero1") && group < run.count("n_gpus").value_or(0)) settings.put("/policy/shard_group_size", group, Weight::stated);
  if (settings.find("/policy/framework")->get<std::string>() != "fsdp1") return;  // the rest is FSDP1's own
  put_flag(run, "limit_all_gathers", "/policy/limit_all_gathers", settings);
  put_flag(run, "forward_prefetch", "/policy/forward_prefetch", settings);
  const Cell* prefetch = run.find("backward_prefetch");
  if (prefetch) settings.put("/policy/backward_prefetch", prefetch->text.substr(0, prefetch->text.find(' ')), weight_of(*prefetch));
}

void put_precision(const Run& run, Settings& settings) {
  const Cell* precision = run.find("precision");
  const char* param = precision ? dtype_in(precision->text) : nullptr;
  settings.put("/precision/param", param ? param : "bf16", param ? weight_of(*precision) : Weight::fallback);
  if (precision) put_matmul(*precision, settings);
  if (*settings.find("/policy/framework") == "ddp") return;  // reduces in the type of the master copy
  const Cell* reduce = run.find("grad_reduce_dtype");
  const char* type = reduce ? dtype_in(reduce->text.substr(0, 4)) : nullptr;
  settings.put("/precision/reduce", type ? nlohmann::json(type) : *settings.find("/precision/param"), type ? weight_of(*reduce) : Weight::fallback);
}

void put_kernels(const Run& run, Settings& settings) {
  if (const Cell* compile = run.find("compile"))
    settings.put("/kernels/set", compile->text == "yes" ? "pytorch-compile" : "pytorch-eager", weight_of(*compile));
  const Cell* attention = run.find("attention");
  if (!attention) return;
  const std::string words = lower(attention->text);
  const Weight weight = weight_of(*attention);
  if (contains(words, "unfused")) settings.put("/kernels/attention", "unfused", weight);
  else if (contains(words, "triton")) settings.put("/kernels/attention", "triton", weight);
  else if (contains(words, "flash v2") || contains(words, "flash2")) settings.put("/kernels/attention", "flash2", weight);
  else if (contains(words, "flash v3") || contains(words, "flash3")) settings.put("/kernels/attention", "flash3", weight);
  else if (!settings.find("/kernels/attention")) settings.put("/kernels/attention", "flash2", Weight::loose);
}

}  // namespace stepcast::cli
