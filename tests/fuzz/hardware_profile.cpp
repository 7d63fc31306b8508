// Fuzzes the reader of hardware profiles: any text gives a profile or an InputError, never anything else.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hw_models/input_error.hpp"
#include "hw_models/profiles.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    (void)stepcast::hw::parse_gpu_profile(text, "fuzz.json");
  } catch (const stepcast::InputError&) {}
  try {
    (void)stepcast::hw::parse_node_profile(text, "fuzz.json");
  } catch (const stepcast::InputError&) {}
  return 0;
}
