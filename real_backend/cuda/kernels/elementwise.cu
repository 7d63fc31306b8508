// Copies, casts, sums and activations, element by element.
#include <grid.cuh>

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "real_backend/cuda/kernels/arguments.hpp"

namespace stepcast::real::cuda::kernels {

void zero(const Arguments& a) { check(cudaMemsetAsync(a.parts[0], 0, static_cast<std::size_t>(a.bytes(0)), a.stream()), "cudaMemsetAsync"); }

namespace {

template <class From, class To>
struct Copy {
  using Wide = std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>, double, float>;
  Global<const From> from;
  Global<To> to;
  Wide factor;
  STEPCAST_DEVICE void operator()(std::int64_t i) const { to[i] = static_cast<To>(static_cast<Wide>(from[i]) * factor); }
};

void copy_one(const Arguments& a, std::size_t from, std::size_t to) {
  const double factor = a.at().factor;
  if (a.count(from) != a.count(to)) throw std::runtime_error("a copy between parts of different sizes");
  if (a.dtype(from) == a.dtype(to) && factor == 1) {
    if (a.count(to) == 0) return;
    return check(cudaMemcpyAsync(a.parts[to], a.parts[from], static_cast<std::size_t>(a.bytes(to)), cudaMemcpyDeviceToDevice, a.stream()), "cudaMemcpyAsync");
  }
  with_type(a.dtype(from), [&]<class From>(Type<From>) {
    with_type(a.dtype(to), [&]<class To>(Type<To>) {
      using Kernel = Copy<From, To>;
      for_elements(a.stream(), a.count(to), Kernel{a.pointer<const From>(from), a.pointer<To>(to), static_cast<typename Kernel::Wide>(factor)});
    });
  });
}

template <class To, class From>
struct Add {
  using S = Sum<To>;
  Global<To> into;
  Global<const From> x;
  STEPCAST_DEVICE void operator()(std::int64_t i) const { into[i] = static_cast<To>(static_cast<S>(into[i]) + static_cast<S>(static_cast<Sum<From>>(x[i]))); }
};

template <class T>
struct Sums {
  using S = Sum<T>;
  Global<const T> a, b;
  Global<T> out;
  STEPCAST_DEVICE void operator()(std::int64_t i) const { out[i] = static_cast<T>(static_cast<S>(a[i]) + static_cast<S>(b[i])); }
};

template <class T>
struct Scale {
  using S = Sum<T>;
  Global<T> x;
  S factor;
  STEPCAST_DEVICE void operator()(std::int64_t i) const { x[i] = static_cast<T>(static_cast<S>(x[i]) * factor); }
};

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
    with_type(a.dtype(1), [&]<class From>(Type<From>) { for_elements(a.stream(), a.count(0), Add<To, From>{a.pointer<To>(0), a.pointer<const From>(1)}); });
  });
}

void sum(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    for_elements(a.stream(), a.count(2), Sums<T>{a.pointer<const T>(0), a.pointer<const T>(1), a.pointer<T>(2)});
  });
}

void scale(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { for_elements(a.stream(), a.count(0), Scale<T>{a.pointer<T>(0), static_cast<Sum<T>>(a.at().factor)}); });
}

namespace {

template <class S>
struct Activated {
  S value, slope;
};

/// x Phi(x), and its derivative: the exact GELU (Hendrycks and Gimpel, 2016).
template <class S>
STEPCAST_DEVICE Activated<S> gelu_of(S x) {
  const S phi = S(0.5) * (S(1) + std::erf(x / std::numbers::sqrt2_v<S>));
  const S density = std::exp(-x * x / S(2)) * std::numbers::inv_sqrtpi_v<S> / std::numbers::sqrt2_v<S>;
  return {x * phi, phi + x * density};
}

template <class S>
STEPCAST_DEVICE Activated<S> silu_of(S x) {
  const S sigmoid = S(1) / (S(1) + std::exp(-x)), value = x * sigmoid;
  return {value, sigmoid * (S(1) + x - value)};
}

template <class S>
STEPCAST_DEVICE Activated<S> activate(program::Activation activation, S x) {
  return activation == program::Activation::gelu ? gelu_of(x) : silu_of(x);
}

/// gate and up are rows of `stride` elements, as their gradients are; the product's have `columns`.
template <class T>
struct Gated {
  using S = Sum<T>;
  Global<const T> gate, up;
  Global<T> out;
  std::int64_t columns, stride;
  program::Activation activation;
  STEPCAST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t place = i / columns * stride + i % columns;
    out[i] = static_cast<T>(activate(activation, static_cast<S>(gate[place])).value * static_cast<S>(up[place]));
  }
};

template <class T>
struct GatedBackward {
  using S = Sum<T>;
  Global<const T> d_out, gate, up;
  Global<T> d_gate, d_up;
  std::int64_t columns, stride;
  program::Activation activation;
  STEPCAST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t place = i / columns * stride + i % columns;
    const Activated<S> a = activate(activation, static_cast<S>(gate[place]));
    const S d = static_cast<S>(d_out[i]), from_gate = d * static_cast<S>(up[place]) * a.slope;
    d_gate[place] = static_cast<T>(from_gate);
    d_up[place] = static_cast<T>(d * a.value);
  }
};

template <class T>
struct Gelu {
  Global<const T> x;
  Global<T> out;
  STEPCAST_DEVICE void operator()(std::int64_t i) const { out[i] = static_cast<T>(gelu_of(static_cast<Sum<T>>(x[i])).value); }
};

template <class T>
struct GeluBackward {
  using S = Sum<T>;
  Global<const T> d_out, x;
  Global<T> d_x;
  STEPCAST_DEVICE void operator()(std::int64_t i) const { d_x[i] = static_cast<T>(static_cast<S>(d_out[i]) * gelu_of(static_cast<S>(x[i])).slope); }
};

}  // namespace

void gated(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    const program::Attributes& at = a.at();
    for_elements(a.stream(), at.rows * at.columns,
                 Gated<T>{a.pointer<const T>(0), a.pointer<const T>(1), a.pointer<T>(2), at.columns, at.stride, at.activation});
  });
}

void gated_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    const program::Attributes& at = a.at();
    for_elements(a.stream(), at.rows * at.columns,
                 GatedBackward<T>{a.pointer<const T>(0), a.pointer<const T>(1), a.pointer<const T>(2), a.pointer<T>(3), a.pointer<T>(4), at.columns, at.stride,
                                  at.activation});
  });
}

void gelu(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { for_elements(a.stream(), a.count(1), Gelu<T>{a.pointer<const T>(0), a.pointer<T>(1)}); });
}

void gelu_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    for_elements(a.stream(), a.count(2), GeluBackward<T>{a.pointer<const T>(0), a.pointer<const T>(1), a.pointer<T>(2)});
  });
}

}  // namespace stepcast::real::cuda::kernels
