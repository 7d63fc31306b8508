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

template <class S>
S sigmoid(S x) {
  return S(1) / (S(1) + std::exp(-x));
}

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

template <class S>
struct Slope {
  S value, slope;
};

template <class S>
Slope<S> activate(program::Activation activation, S x) {
  if (activation == program::Activation::gelu) return {gelu_of(x), gelu_slope(x)};
  const S s = sigmoid(x);
  return {x * s, s * (S(1) + x * (S(1) - s))};
}

}  // namespace

/// gate and up are rows of `stride` elements, as their gradients are; the product's have `columns`.
void gated(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    using S = Sum<T>;
    const program::Attributes& at = a.at();
    for (std::int64_t row = 0; row < at.rows; ++row) {
      const T *gate = a.pointer<T>(0) + row * at.stride, *up = a.pointer<T>(1) + row * at.stride;
      T* out = a.pointer<T>(2) + row * at.columns;
      if (at.activation == program::Activation::silu) {
        for (std::int64_t i = 0; i < at.columns; ++i) out[i] = static_cast<T>(S(gate[i]) * sigmoid(S(gate[i])) * S(up[i]));
      } else {
        for (std::int64_t i = 0; i < at.columns; ++i) out[i] = static_cast<T>(gelu_of(S(gate[i])) * S(up[i]));
      }
    }
  });
}

void gated_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    using S = Sum<T>;
    const program::Attributes& at = a.at();
    for (std::int64_t row = 0; row < at.rows; ++row) {
      const T *d = a.pointer<T>(0) + row * at.columns, *gate = a.pointer<T>(1) + row * at.stride, *up = a.pointer<T>(2) + row * at.stride;
      T *d_gate = a.pointer<T>(3) + row * at.stride, *d_up = a.pointer<T>(4) + row * at.stride;
      for (std::int64_t i = 0; i < at.columns; ++i) {
        const Slope<S> f = activate(at.activation, S(gate[i]));
        d_gate[i] = static_cast<T>(S(d[i]) * S(up[i]) * f.slope);
        d_up[i] = static_cast<T>(S(d[i]) * f.value);
      }
    }
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
