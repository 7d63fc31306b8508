// Any bytes as a Hugging Face config.json: the importer accepts or throws InputError; an accepted shape has sizes that can be counted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hw_models/input_error.hpp"
#include "program/model.hpp"
#include "scenarios/hf_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  try {
    const auto model = scenarios::import_hf_config({reinterpret_cast<const char*>(data), size}, "config.json");
    if (program::parameters(model.shape) <= 0) std::abort();
  } catch (const InputError&) {}
  return 0;
}
