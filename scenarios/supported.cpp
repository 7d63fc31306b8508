// The list of what is not supported yet. See supported.hpp.
#include "scenarios/supported.hpp"

#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"

namespace stepcast::scenarios {
namespace {

/// `value`: the text (or "false") that is refused; "" refuses every value but false.
struct Future {
  const char* pointer;
  const char* value;
  const char* hint;
};

constexpr Future kFuture[] = {
    {"/model/experts", "", "mixture-of-experts models"},
    {"/model/sliding_window", "", "attention over a window"},
    {"/policy/framework", "zero1", "use \"fsdp1\""},
    {"/policy/framework", "zero2", "use \"fsdp1\" with sharding \"SHARD_GRAD_OP\""},
    {"/policy/framework", "zero3", "use \"fsdp1\" with sharding \"FULL_SHARD\""},
    {"/policy/cpu_offload", "", ""},
    {"/policy/tensor_parallel", "", ""},
    {"/policy/pipeline_parallel", "", ""},
    {"/precision/param", "fp8", "use \"bf16\", \"fp16\" or \"fp32\""},
    {"/precision/param", "tf32", "use \"bf16\", \"fp16\" or \"fp32\""},
    {"/precision/param", "fp64", "use \"bf16\", \"fp16\" or \"fp32\""},
    {"/precision/reduce", "fp8", "use \"bf16\", \"fp16\" or \"fp32\""},
    {"/precision/reduce", "fp64", "use \"bf16\", \"fp16\" or \"fp32\""},
    {"/precision/master", "fp64", "use \"bf16\", \"fp16\" or \"fp32\""},
    {"/recompute/offload", "", "activations stay on the device"},
    {"/kernels/set", "native", "use \"pytorch-eager\" or \"pytorch-compile\""},
};

const Json* find(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.is_object() && json.contains(at) ? &json.at(at) : nullptr;
}

bool refused(const Json& found, const std::string& value) {
  const bool is_false = found.is_boolean() && !found.get<bool>();
  if (value.empty()) return !is_false;
  if (value == "false") return is_false;
  return found.is_string() && found.get_ref<const std::string&>() == value;
}

std::string with_value(const std::string& value) {
  if (value.empty()) return "not supported yet";
  return (value == "false" ? value : "\"" + value + "\"") + " is not supported yet";
}

}  // namespace

void refuse_unsupported(const Json& scenario, const Reader::Origin& origin) {
  for (const Future& future : kFuture) {
    const Json* found = find(scenario, future.pointer);
    if (found && refused(*found, future.value)) throw InputError(origin(future.pointer), future.pointer, with_value(future.value), future.hint);
  }
}

void refuse_unsupported(const Scenario& scenario, const Reader::Origin& origin) {
  const auto refuse = [&](const char* pointer, const char* what, const char* hint) { throw InputError(origin(pointer), pointer, what, hint); };
  const program::ModelShape& model = scenario.model;
  if (model.style == program::BlockStyle::llama) {
    if (model.ffn_kind != program::FfnKind::swiglu)
      refuse("/model/ffn_kind", "a llama block with another feed-forward than swiglu is not supported yet", "use style \"gpt\"");
    if (model.norm != program::NormKind::rms_norm)
      refuse("/model/norm", "a llama block with another norm than rms_norm is not supported yet", "use style \"gpt\"");
    if (model.positions != program::Positions::rope)
      refuse("/model/positions", "a llama block with other positions than rope is not supported yet", "use style \"gpt\"");
    if (model.clip_qkv) refuse("/model/clip_qkv", "clamping q, k and v in a llama block is not supported yet", "use style \"gpt\"");
  } else {
    if (model.ffn_kind != program::FfnKind::gelu)
      refuse("/model/ffn_kind", "a gpt block with another feed-forward than gelu is not supported yet", "use style \"llama\"");
    if (model.norm != program::NormKind::layer_norm)
      refuse("/model/norm", "a gpt block with another norm than layer_norm is not supported yet", "use style \"llama\"");
    if (model.positions == program::Positions::rope) refuse("/model/positions", "a gpt block with rope is not supported yet", "use style \"llama\"");
  }
}

}  // namespace stepcast::scenarios
