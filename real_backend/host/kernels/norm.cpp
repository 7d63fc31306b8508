// RMSNorm (Zhang and Sennrich, 2019) and LayerNorm (Ba et al., 2016), row by row.
#include <cmath>

#include "real_backend/host/kernels/arguments.hpp"

namespace stepcast::real::host::kernels {
namespace {

constexpr double kEpsilon = 1e-5;

template <class S>
struct Statistics {
  S mean = 0, rstd = 0;
};

/// Of a row: the reciprocal deviation, and before it the mean if there is one.
template <class S>
Statistics<S> statistics_of(const S* stored, std::int64_t row, bool centred) {
  return centred ? Statistics<S>{stored[2 * row], stored[2 * row + 1]} : Statistics<S>{S(0), stored[row]};
}

template <class T>
void forward(const Arguments& a) {
  using S = Sum<T>;
  const program::Attributes& at = a.at();
  const auto n = static_cast<S>(at.columns);
  S* stored = a.pointer<S>(4);
  const auto weight = Array<T>(a.pointer<T>(1), at.columns).template cast<S>();
  Array<S> x(a.scratch.get<S>(0, at.columns), at.columns);
  for (std::int64_t row = 0; row < at.rows; ++row) {
    x = Array<T>(a.pointer<T>(0) + row * at.columns, at.columns).template cast<S>();
    const S mean = at.centred ? x.sum() / n : S(0);
    x -= mean;
    const S rstd = S(1) / std::sqrt(x.square().sum() / n + static_cast<S>(kEpsilon));
    if (at.centred) stored[2 * row] = mean, stored[2 * row + 1] = rstd;
    else stored[row] = rstd;
    Array<T> out(a.pointer<T>(3) + row * at.columns, at.columns);
    if (a.has(2)) out = (x * rstd * weight + Array<T>(a.pointer<T>(2), at.columns).template cast<S>()).template cast<T>();
    else out = (x * rstd * weight).template cast<T>();
  }
}

/// With y = (x - mean) rstd and g = d_out weight: d_x = rstd (g - y mean(g y) [- mean(g)]) + residual.
template <class T>
void backward(const Arguments& a) {
  using S = Sum<T>;
  const program::Attributes& at = a.at();
  const std::int64_t columns = at.columns;
  const auto n = static_cast<S>(columns);
  const auto scratch = [&](std::size_t place) { return Array<S>(a.scratch.get<S>(place, columns), columns); };
  Array<S> y = scratch(0), g = scratch(1), d_weight = scratch(2), d_bias = scratch(3);
  const auto weight = Array<T>(a.pointer<T>(3), columns).template cast<S>();
  d_weight.setZero();
  d_bias.setZero();
  for (std::int64_t row = 0; row < at.rows; ++row) {
    const Statistics<S> s = statistics_of(a.pointer<const S>(2), row, at.centred);
    y = (Array<T>(a.pointer<T>(1) + row * columns, columns).template cast<S>() - s.mean) * s.rstd;
    g = Array<T>(a.pointer<T>(0) + row * columns, columns).template cast<S>();
    d_weight += g * y;
    d_bias += g;
    g *= weight;
    const S mean_gy = (g * y).sum() / n, mean_g = at.centred ? g.sum() / n : S(0);
    g = (g - y * mean_gy - mean_g) * s.rstd;
    if (a.has(4)) g += Array<T>(a.pointer<T>(4) + row * columns, columns).template cast<S>();
    Array<T>(a.pointer<T>(5) + row * columns, columns) = g.template cast<T>();
  }
  Array<T>(a.pointer<T>(6), columns) = d_weight.template cast<T>();
  if (a.has(7)) Array<T>(a.pointer<T>(7), columns) = d_bias.template cast<T>();
}

}  // namespace

void norm(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { forward<T>(a); });
}

void norm_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { backward<T>(a); });
}

}  // namespace stepcast::real::host::kernels
