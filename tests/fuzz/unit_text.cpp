// Any bytes as a quantity: parsing accepts or throws UnitError, and what it accepts has a text that parses back to the same bits.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hw_models/text_units.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepcast;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Dimension dimension : {Dimension::time, Dimension::size, Dimension::rate, Dimension::flops, Dimension::flop_rate, Dimension::frequency}) {
    try {
      const double value = parse_si(text, dimension);
      if (!std::isfinite(value) || parse_si(si_text(value, dimension), dimension) != value) std::abort();
    } catch (const UnitError&) {}
  }
  try {
    const std::int64_t bytes = parse_bytes(text);
    if (bytes < 0 || parse_bytes(bytes_text(bytes)) != bytes) std::abort();
  } catch (const UnitError&) {}
  return 0;
}
