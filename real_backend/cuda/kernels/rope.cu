// Rotary positions (Su et al., 2021).
#include <grid.cuh>

#include <cmath>

#include "real_backend/cuda/kernels/arguments.hpp"

namespace stepcast::real::cuda::kernels {
namespace {

constexpr double kBase = 10000;

/// A pair of elements of every head of a row, turned by one angle; angles in fp64, as the host driver's table.
template <class T>
struct Rotate {
  using S = Sum<T>;
  Global<const T> x;
  Global<T> out;
  std::int64_t heads, head_dim, width, length;
  S direction;
  STEPCAST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t half = head_dim / 2, row = i / half, j = i % half;
    const double angle = static_cast<double>(row % length) * std::pow(kBase, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim));
    const S c = static_cast<S>(std::cos(angle)), s = direction * static_cast<S>(std::sin(angle));
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t place = row * width + head * head_dim + j;
      const S first = static_cast<S>(x[place]), second = static_cast<S>(x[place + half]);
      out[place] = static_cast<T>(first * c - second * s);
      out[place + half] = static_cast<T>(second * c + first * s);
    }
  }
};

/// What stands behind the heads that turn.
template <class T>
struct CopyRest {
  Global<const T> x;
  Global<T> out;
  std::int64_t turned, width;
  STEPCAST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t rest = width - turned, place = i / rest * width + turned + i % rest;
    out[place] = x[place];
  }
};

}  // namespace

void rope(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    const program::Attributes& at = a.at();
    const std::int64_t width = at.all_heads * at.head_dim, turned = at.heads * at.head_dim;
    for_elements(a.stream(), at.rows * (at.head_dim / 2),
                 Rotate<T>{a.pointer<const T>(0), a.pointer<T>(1), at.heads, at.head_dim, width, at.seq_len, static_cast<Sum<T>>(at.factor)});
    for_elements(a.stream(), at.rows * (width - turned), CopyRest<T>{a.pointer<const T>(0), a.pointer<T>(1), turned, width});
  });
}

}  // namespace stepcast::real::cuda::kernels
