// Clipping as torch.nn.utils.clip_grad_norm_, and AdamW (Loshchilov and Hutter, 2019) as torch.optim.AdamW.
#include <grid.cuh>

#include <cmath>

#include "real_backend/cuda/kernels/arguments.hpp"

namespace stepcast::real::cuda::kernels {
namespace {

constexpr double kClipEpsilon = 1e-6;
constexpr std::int64_t kPartials = 512;  // sums, each by a block, before the last one

/// Block `row` of kPartials adds what falls to it.
template <class T>
struct Squares {
  Global<const T> x;
  Global<double> partial;
  std::int64_t count;
  bool first;
  STEPCAST_DEVICE void operator()(const Block& block, std::int64_t row) const {
    double total = 0;
    for (std::int64_t i = row * block.step() + block.first(); i < count; i += kPartials * block.step()) {
      const double value = static_cast<double>(static_cast<Sum<T>>(x[i]));
      total += value * value;
    }
    total = block.sum(total);
    if (block.first() == 0) partial[row] = first ? total : partial[row] + total;
  }
};

/// A number in the type of the gradient's norm: fp32 or fp64.
template <class N>
struct Total {
  Global<const double> partial;
  Global<N> out;
  STEPCAST_DEVICE void operator()(const Block& block, std::int64_t) const {
    double total = 0;
    for (std::int64_t i = block.first(); i < kPartials; i += block.step()) total += partial[i];
    total = block.sum(total);
    if (block.first() == 0) out[0] = static_cast<N>(total);
  }
};

template <class N>
struct Clip {
  Global<N> number;
  Global<double> norm;
  double max_norm;
  STEPCAST_DEVICE void operator()(std::int64_t) const {
    norm[0] = std::sqrt(static_cast<double>(number[0]));
    const double factor = max_norm / (norm[0] + kClipEpsilon);
    number[0] = static_cast<N>(factor < 1 ? factor : 1.0);
  }
};

template <class T, class N>
struct ScaleBy {
  using S = Sum<T>;
  Global<const N> number;
  Global<T> x;
  STEPCAST_DEVICE void operator()(std::int64_t i) const {
    const N factor = number[0];
    if (factor != N(1)) x[i] = static_cast<T>(static_cast<S>(x[i]) * static_cast<S>(factor));
  }
};

template <class F>
void with_number(const Arguments& a, F f) {
  if (a.dtype(0) == hw::Dtype::fp64) f(Type<double>{});
  else f(Type<float>{});
}

}  // namespace

void sum_of_squares(const Arguments& a) {
  auto* partial = a.lane.scratch().get<double>(0, kPartials);
  for (std::size_t i = 1; i < a.size(); ++i)
    with_type(a.dtype(i), [&]<class T>(Type<T>) { for_rows(a.stream(), kPartials, Squares<T>{a.pointer<const T>(i), partial, a.count(i), i == 1}); });
  with_number(a, [&]<class N>(Type<N>) { for_rows(a.stream(), 1, Total<N>{partial, a.pointer<N>(0)}); });
}

void clip_coefficient(const Arguments& a) {
  double* norm = a.pointer<double>(1) + program::kMetricsPerStep * a.environment.moment.step + 1;
  with_number(a, [&]<class N>(Type<N>) { for_elements(a.stream(), 1, Clip<N>{a.pointer<N>(0), norm, a.environment.training.hyper.max_norm}); });
}

void scale_by(const Arguments& a) {
  for (std::size_t i = 1; i < a.size(); ++i) {
    with_type(a.dtype(i), [&]<class T>(Type<T>) {
      with_number(a, [&]<class N>(Type<N>) { for_elements(a.stream(), a.count(i), ScaleBy<T, N>{a.pointer<const N>(0), a.pointer<T>(i)}); });
    });
  }
}

namespace {

template <class T>
struct AdamW {
  using S = Sum<T>;
  Global<T> p;
  Global<const T> g;
  Global<T> m, v;
  S beta1, beta2, epsilon, keep, rate, root;
  STEPCAST_DEVICE void operator()(std::int64_t i) const {
    const S gradient = static_cast<S>(g[i]);
    const S first = beta1 * static_cast<S>(m[i]) + (S(1) - beta1) * gradient, second = beta2 * static_cast<S>(v[i]) + (S(1) - beta2) * gradient * gradient;
    m[i] = static_cast<T>(first);
    v[i] = static_cast<T>(second);
    p[i] = static_cast<T>(static_cast<S>(p[i]) * keep - rate * first / (std::sqrt(second) / root + epsilon));
  }
};

template <class T>
void update(const Arguments& a, std::size_t first) {
  using S = Sum<T>;
  const Hyperparameters& h = a.environment.training.hyper;
  const double step = a.environment.moment.step + 1;
  const auto number = [](double value) { return static_cast<S>(value); };
  for_elements(a.stream(), a.count(first),
               AdamW<T>{a.pointer<T>(first), a.pointer<const T>(first + 1), a.pointer<T>(first + 2), a.pointer<T>(first + 3), number(h.beta1), number(h.beta2),
                        number(h.epsilon), number(1 - h.learning_rate * h.weight_decay), number(h.learning_rate / (1 - std::pow(h.beta1, step))),
                        number(std::sqrt(1 - std::pow(h.beta2, step)))});
}

}  // namespace

void adamw(const Arguments& a) {
  for (std::size_t i = 0; i + 3 < a.size(); i += 4) with_type(a.dtype(i), [&]<class T>(Type<T>) { update<T>(a, i); });
}

}  // namespace stepcast::real::cuda::kernels
