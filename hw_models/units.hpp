// Physical quantities of the cost formulas: seconds, bytes, FLOPs and their rates, checked by the compiler.
// A raw double in a signature is a ratio and says so by its name. Decision: docs/adr/0003-own-units.md; test: tests/unit/units_test.cpp.
#pragma once

#include <compare>

namespace stepcast {

/// A value of dimension second^S * byte^B * flop^F. No implicit conversion in or out; `.in(unit)` reads it as a number.
template <int S, int B, int F>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}
  /// How many `unit`s this is, e.g. `time.in(microsecond)`.
  [[nodiscard]] constexpr double in(Quantity unit) const { return value_ / unit.value_; }
  /// The value in SI base units (s, B, FLOP); for output and for the one rounding function only.
  [[nodiscard]] constexpr double si() const { return value_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, double ratio) { return Quantity(a.value_ * ratio); }
  friend constexpr Quantity operator*(double ratio, Quantity a) { return Quantity(ratio * a.value_); }
  friend constexpr Quantity operator/(Quantity a, double ratio) { return Quantity(a.value_ / ratio); }

 private:
  double value_ = 0;
};

template <int S, int B, int F, int S2, int B2, int F2>
constexpr auto operator*(Quantity<S, B, F> a, Quantity<S2, B2, F2> b) {
  if constexpr (S + S2 == 0 && B + B2 == 0 && F + F2 == 0) return a.si() * b.si();
  else return Quantity<S + S2, B + B2, F + F2>(a.si() * b.si());
}

template <int S, int B, int F, int S2, int B2, int F2>
constexpr auto operator/(Quantity<S, B, F> a, Quantity<S2, B2, F2> b) {
  if constexpr (S == S2 && B == B2 && F == F2) return a.si() / b.si();
  else return Quantity<S - S2, B - B2, F - F2>(a.si() / b.si());
}

using Seconds = Quantity<1, 0, 0>;
using Bytes = Quantity<0, 1, 0>;
using Flops = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<-1, 1, 0>;
using FlopsPerSecond = Quantity<-1, 0, 1>;

inline constexpr Seconds second{1}, millisecond{1e-3}, microsecond{1e-6}, nanosecond{1e-9};
inline constexpr Bytes byte{1}, megabyte{1e6}, gigabyte{1e9}, mebibyte{1048576}, gibibyte{1073741824};
inline constexpr Flops flop{1}, teraflop{1e12};
inline constexpr BytesPerSecond GBps{1e9};
inline constexpr FlopsPerSecond TFLOPS{1e12};

}  // namespace stepcast
