// Quantities as text: "25 GB/s", "200 Gb/s", "80 GiB", "8 us", "312 TFLOP/s". Case-sensitive; B is a byte, b a bit; a number without a unit is an error.
// Described for users in docs/scenario.md, "Values with units"; test: tests/unit/text_units_test.cpp.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "hw_models/units.hpp"

namespace stepcast {

using PerSecond = Quantity<-1, 0, 0>;

/// What a value measures; selects the units that its text may carry.
enum class Dimension : std::uint8_t { time, size, rate, flops, flop_rate, frequency };

/// A text that is not a quantity of the wanted dimension. One line without file or place: the reader adds them.
class UnitError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Value in SI base units (s, B, B/s, FLOP, FLOP/s, 1/s). Finite; may be negative. Throws UnitError.
double parse_si(std::string_view text, Dimension dimension);
/// Shortest text that parses back to the same value, in `unit` if that is given and exact.
std::string si_text(double si, Dimension dimension, std::string_view unit = "");
/// The units of a dimension, e.g. "ps, ns, us, ms, s"; for messages.
std::string unit_list(Dimension dimension);

/// Whole bytes; units above B are rounded to the nearest byte. Throws UnitError on a fraction of "B", a negative size or one above 8 PiB.
std::int64_t parse_bytes(std::string_view text);
std::string bytes_text(std::int64_t bytes);

template <class Q>
constexpr Dimension dimension_of() {
  if constexpr (std::is_same_v<Q, Seconds>) return Dimension::time;
  else if constexpr (std::is_same_v<Q, Bytes>) return Dimension::size;
  else if constexpr (std::is_same_v<Q, BytesPerSecond>) return Dimension::rate;
  else if constexpr (std::is_same_v<Q, Flops>) return Dimension::flops;
  else if constexpr (std::is_same_v<Q, FlopsPerSecond>) return Dimension::flop_rate;
  else {
    static_assert(std::is_same_v<Q, PerSecond>, "no text form for this dimension");
    return Dimension::frequency;
  }
}

template <class Q>
Q parse_quantity(std::string_view text) {
  return Q(parse_si(text, dimension_of<Q>()));
}

template <int S, int B, int F>
std::string quantity_text(Quantity<S, B, F> quantity, std::string_view unit = "") {
  return si_text(quantity.si(), dimension_of<Quantity<S, B, F>>(), unit);
}

}  // namespace stepcast
