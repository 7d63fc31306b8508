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
    {"/policy/tensor_parallel", "", ""},
    {"/policy/pipeline_parallel", "", ""},
    {"/precision/param", "fp8", "parameters stay in 16 bits: set /precision/matmul"},
    {"/precision/param", "tf32", "tf32 is a way to multiply fp32: set /precision/matmul"},
    {"/precision/reduce", "fp8", "use \"bf16\", \"fp16\" or \"fp32\""},
    {"/recompute/offload", "", "activations stay on the device"},
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

}  // namespace stepcast::scenarios
