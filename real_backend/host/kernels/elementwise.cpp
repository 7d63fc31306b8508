// Copies, casts, sums and activations, element by element.
#include <cmath>
#include <cstring>
#include <numbers>

#include "real_backend/host/kernels/arguments.hpp"

namespace stepcast::real::host::kernels {

void zero(const Arguments& a) { std::memset(a.parts[0], 0, static_cast<std::size_t>(a.count(0) * hw::bytes_per_element(a.dtype(0)))); }

namespace {

void copy_one(const Arguments& a, std::size_t from, std::size_t to) {
  const double factor = a.at().factor;
  if (a.count(from) != a.count(to)) throw std::runtime_error("a copy between parts of different sizes");
  if (a.dtype(from) == a.dtype(to) && factor == 1) {
    std::memcpy(a.parts[to], a.parts[from], static_cast<std::size_t>(a.count(to) * hw::bytes_per_element(a.dtype(to))));
    return;
  }
  with_type(a.dtype(from), [&]<class From>(Type<From>) {
    with_type(a.dtype(to), [&]<class To>(Type<To>) {
      using Wide = std::conditional_t<std::is_same_v<Sum<From>, double> || std::is_same_v<Sum<To>, double>, double, float>;
      a.array<To>(to) = (a.array<From>(from).template cast<Wide>() * static_cast<Wide>(factor)).template cast<To>();
    });
  });
}

}  // namespace

void copy(const Arguments& a, std::size_t first) {
  for (std::size_t i = first; i + 1 < a.size(); i += 2) copy_one(a, i, i + 1);
}

void pack(const Arguments& a) {
  zero(a);
  copy(a, 1);
}

void add(const Arguments& a) {
  with_type(a.dtype(0), [&]<class To>(Type<To>) {
    with_type(a.dtype(1), [&]<class From>(Type<From>) {
      using S = Sum<To>;
      a.array<To>(0) = (a.array<To>(0).template cast<S>() + a.array<From>(1).template cast<Sum<From>>().template cast<S>()).template cast<To>();
    });
  });
}

void sum(const Arguments& a) {
  with_type(a.dtype(0),
            [&]<class T>(Type<T>) { a.array<T>(2) = (a.array<T>(0).template cast<Sum<T>>() + a.array<T>(1).template cast<Sum<T>>()).template cast<T>(); });
}

void scale(const Arguments& a) {
  with_type(a.dtype(0),
            [&]<class T>(Type<T>) { a.array<T>(0) = (a.array<T>(0).template cast<Sum<T>>() * static_cast<Sum<T>>(a.at().factor)).template cast<T>(); });
}

namespace {

/// x Phi(x), and its derivative: the exact GELU (Hendrycks and Gimpel, 2016).
template <class S>
S gelu_of(S x) {
  return x * S(0.5) * (S(1) + std::erf(x / std::numbers::sqrt2_v<S>));
}
template <class S>
S gelu_slope(S x) {
  const S density = std::exp(-x * x / S(2)) * std::numbers::inv_sqrtpi_v<S> / std::numbers::sqrt2_v<S>;
  return S(0.5) * (S(1) + std::erf(x / std::numbers::sqrt2_v<S>)) + x * density;
}

/// activation(x) into `value`, and its derivative into `slope`.
template <class S>
void activate(program::Activation activation, const Array<S>& x, Array<S>& value, Array<S>& slope) {
  if (activation == program::Activation::gelu) {
    value = x.unaryExpr([](S v) { return gelu_of(v); });
    slope = x.unaryExpr([](S v) { return gelu_slope(v); });
    return;
  }
  slope = S(1) / (S(1) + (-x).exp());
  value = x * slope;
  slope = slope * (S(1) + x - value);
}

/// f(row, ...) with a row's gate widened, and room for two more rows.
template <class S, class F>
void for_gates(const Arguments& a, F f) {
  const std::int64_t columns = a.at().columns;
  const auto room = [&](std::size_t place) { return Array<S>(a.scratch.get<S>(place, columns), columns); };
  Array<S> gate = room(0), value = room(1), slope = room(2);
  for (std::int64_t row = 0; row < a.at().rows; ++row) f(row, gate, value, slope);
}

/// `columns` elements of a row from tensors with rows of `stride`.
template <class T>
Array<T> line(const Arguments& a, std::size_t part, std::int64_t row, std::int64_t stride) {
  return Array<T>(a.pointer<T>(part) + row * stride, a.at().columns);
}

}  // namespace

/// gate and up are rows of `stride` elements, as their gradients are; the product's have `columns`.
void gated(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    using S = Sum<T>;
    const program::Attributes& at = a.at();
    for_gates<S>(a, [&](std::int64_t row, Array<S>& gate, Array<S>& value, Array<S>& slope) {
      gate = line<T>(a, 0, row, at.stride).template cast<S>();
      activate(at.activation, gate, value, slope);
      line<T>(a, 2, row, at.columns) = (value * line<T>(a, 1, row, at.stride).template cast<S>()).template cast<T>();
    });
  });
}

void gated_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    using S = Sum<T>;
    const program::Attributes& at = a.at();
    for_gates<S>(a, [&](std::int64_t row, Array<S>& gate, Array<S>& value, Array<S>& slope) {
      gate = line<T>(a, 1, row, at.stride).template cast<S>();
      activate(at.activation, gate, value, slope);
      const auto d = line<T>(a, 0, row, at.columns).template cast<S>();
      line<T>(a, 3, row, at.stride) = (d * line<T>(a, 2, row, at.stride).template cast<S>() * slope).template cast<T>();
      line<T>(a, 4, row, at.stride) = (d * value).template cast<T>();
    });
  });
}

void gelu(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    const T* x = a.pointer<T>(0);
    T* out = a.pointer<T>(1);
    for (std::int64_t i = 0; i < a.count(1); ++i) out[i] = static_cast<T>(gelu_of(static_cast<Sum<T>>(x[i])));
  });
}

void gelu_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    using S = Sum<T>;
    const T *d = a.pointer<T>(0), *x = a.pointer<T>(1);
    T* out = a.pointer<T>(2);
    for (std::int64_t i = 0; i < a.count(2); ++i) out[i] = static_cast<T>(S(d[i]) * gelu_slope(S(x[i])));
  });
}

}  // namespace stepcast::real::host::kernels
