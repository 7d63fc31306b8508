// RMSNorm (Zhang and Sennrich, 2019) and LayerNorm (Ba et al., 2016), a block for each row.
#include <cmath>

#include "real_backend/cuda/kernels/columns.cuh"

namespace stepcast::real::cuda::kernels {
namespace {

constexpr double kEpsilon = 1e-5;

/// Of a row: the reciprocal deviation, and before it the mean if there is one.
template <class S, class Stored>
struct Statistics {
  Stored stored;
  bool centred;
  STEPCAST_DEVICE S mean(std::int64_t row) const { return centred ? stored[2 * row] : S(0); }
  STEPCAST_DEVICE S rstd(std::int64_t row) const { return centred ? stored[2 * row + 1] : stored[row]; }
};

template <class T>
struct Norm {
  using S = Sum<T>;
  Global<const T> x, weight, bias;
  Global<T> out;
  Global<S> stored;
  std::int64_t columns;
  bool centred, biased;

  STEPCAST_DEVICE void operator()(const Block& block, std::int64_t row) const {
    const std::int64_t begin = row * columns;
    const S n = static_cast<S>(columns);
    S total = 0, squares = 0;
    if (centred) {
      for (std::int64_t i = block.first(); i < columns; i += block.step()) total += static_cast<S>(x[begin + i]);
      total = block.sum(total);
    }
    const S mean = total / n;
    for (std::int64_t i = block.first(); i < columns; i += block.step()) {
      const S deviation = static_cast<S>(x[begin + i]) - mean;
      squares += deviation * deviation;
    }
    const S rstd = S(1) / std::sqrt(block.sum(squares) / n + static_cast<S>(kEpsilon));
    if (block.first() == 0) {
      if (centred) stored[2 * row] = mean;
      stored[centred ? 2 * row + 1 : row] = rstd;
    }
    for (std::int64_t i = block.first(); i < columns; i += block.step()) {
      const S y = (static_cast<S>(x[begin + i]) - mean) * rstd * static_cast<S>(weight[i]);
      out[begin + i] = static_cast<T>(biased ? y + static_cast<S>(bias[i]) : y);
    }
  }
};

/// With y = (x - mean) rstd and g = d_out weight: d_x = rstd (g - y mean(g y) [- mean(g)]) + residual.
template <class T>
struct NormBackward {
  using S = Sum<T>;
  Global<const T> d_out, x, weight, residual;
  Statistics<S, Global<const S>> statistics;
  Global<T> d_x;
  std::int64_t columns;
  bool adds_residual;

  STEPCAST_DEVICE S y(std::int64_t row, std::int64_t i) const { return (static_cast<S>(x[row * columns + i]) - statistics.mean(row)) * statistics.rstd(row); }
  STEPCAST_DEVICE S g(std::int64_t row, std::int64_t i) const { return static_cast<S>(d_out[row * columns + i]) * static_cast<S>(weight[i]); }

  STEPCAST_DEVICE void operator()(const Block& block, std::int64_t row) const {
    const S n = static_cast<S>(columns);
    S gy = 0, g_sum = 0;
    for (std::int64_t i = block.first(); i < columns; i += block.step()) {
      gy += g(row, i) * y(row, i);
      g_sum += g(row, i);
    }
    const S mean_gy = block.sum(gy) / n, mean_g = statistics.centred ? block.sum(g_sum) / n : S(0);
    for (std::int64_t i = block.first(); i < columns; i += block.step()) {
      const S d = (g(row, i) - y(row, i) * mean_gy - mean_g) * statistics.rstd(row);
      d_x[row * columns + i] = static_cast<T>(adds_residual ? d + static_cast<S>(residual[row * columns + i]) : d);
    }
  }
};

/// Terms of the gradients of weight and bias.
template <class T>
struct WeightTerm {
  NormBackward<T> norm;
  STEPCAST_DEVICE Sum<T> operator()(std::int64_t row, std::int64_t column) const {
    return static_cast<Sum<T>>(norm.d_out[row * norm.columns + column]) * norm.y(row, column);
  }
};
template <class T>
struct BiasTerm {
  NormBackward<T> norm;
  STEPCAST_DEVICE Sum<T> operator()(std::int64_t row, std::int64_t column) const { return static_cast<Sum<T>>(norm.d_out[row * norm.columns + column]); }
};

template <class T>
void forward(const Arguments& a) {
  const program::Attributes& at = a.at();
  for_rows(
      a.stream(), at.rows,
      Norm<T>{a.pointer<const T>(0), a.pointer<const T>(1), a.pointer<const T>(2), a.pointer<T>(3), a.pointer<Sum<T>>(4), at.columns, at.centred, a.has(2)});
}

/// The gradients of weight and bias first: d_x may take the place of d_out.
template <class T>
void backward(const Arguments& a) {
  const program::Attributes& at = a.at();
  const NormBackward<T> norm{a.pointer<const T>(0),
                             a.pointer<const T>(1),
                             a.pointer<const T>(3),
                             a.pointer<const T>(4),
                             {a.pointer<const Sum<T>>(2), at.centred},
                             a.pointer<T>(5),
                             at.columns,
                             a.has(4)};
  sum_columns(a, WeightTerm<T>{norm}, a.pointer<T>(6));
  if (a.has(7)) sum_columns(a, BiasTerm<T>{norm}, a.pointer<T>(7));
  for_rows(a.stream(), at.rows, norm);
}

}  // namespace

void norm(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { forward<T>(a); });
}

void norm_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { backward<T>(a); });
}

}  // namespace stepcast::real::cuda::kernels
