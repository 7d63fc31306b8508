// Clipping as torch.nn.utils.clip_grad_norm_, and AdamW (Loshchilov and Hutter, 2019) as torch.optim.AdamW.
#include <cmath>

#include "real_backend/host/kernels/arguments.hpp"

namespace stepcast::real::host::kernels {
namespace {

constexpr double kClipEpsilon = 1e-6;

double number(const Arguments& a) { return a.dtype(0) == hw::Dtype::fp64 ? *a.pointer<double>(0) : static_cast<double>(*a.pointer<float>(0)); }

void set_number(const Arguments& a, double value) {
  if (a.dtype(0) == hw::Dtype::fp64) *a.pointer<double>(0) = value;
  else *a.pointer<float>(0) = static_cast<float>(value);
}

}  // namespace

void sum_of_squares(const Arguments& a) {
  double total = 0;
  for (std::size_t i = 1; i < a.size(); ++i)
    with_type(a.dtype(i), [&]<class T>(Type<T>) { total += a.array<T>(i).template cast<Sum<T>>().template cast<double>().square().sum(); });
  set_number(a, total);
}

void clip_coefficient(const Arguments& a) {
  const double norm = std::sqrt(number(a));
  a.pointer<double>(1)[program::kMetricsPerStep * a.environment.moment.step + 1] = norm;
  set_number(a, std::min(1.0, a.environment.training.hyper.max_norm / (norm + kClipEpsilon)));
}

void scale_by(const Arguments& a) {
  const double factor = number(a);
  if (factor == 1) return;
  for (std::size_t i = 1; i < a.size(); ++i) {
    with_type(a.dtype(i), [&]<class T>(Type<T>) { a.array<T>(i) = (a.array<T>(i).template cast<Sum<T>>() * static_cast<Sum<T>>(factor)).template cast<T>(); });
  }
}

namespace {

template <class T>
void update(const Arguments& a, std::size_t first) {
  using S = Sum<T>;
  const Hyperparameters& h = a.environment.training.hyper;
  const double step = a.environment.moment.step + 1;
  const auto beta1 = static_cast<S>(h.beta1), beta2 = static_cast<S>(h.beta2), epsilon = static_cast<S>(h.epsilon);
  const auto keep = static_cast<S>(1 - h.learning_rate * h.weight_decay), rate = static_cast<S>(h.learning_rate / (1 - std::pow(h.beta1, step)));
  const auto root = static_cast<S>(std::sqrt(1 - std::pow(h.beta2, step)));
  T *p = a.pointer<T>(first), *g = a.pointer<T>(first + 1), *m = a.pointer<T>(first + 2), *v = a.pointer<T>(first + 3);
  for (std::int64_t i = 0; i < a.count(first); ++i) {
    const S gradient = S(g[i]), first_moment = beta1 * S(m[i]) + (S(1) - beta1) * gradient, second = beta2 * S(v[i]) + (S(1) - beta2) * gradient * gradient;
    m[i] = static_cast<T>(first_moment);
    v[i] = static_cast<T>(second);
    p[i] = static_cast<T>(S(p[i]) * keep - rate * first_moment / (std::sqrt(second) / root + epsilon));
  }
}

}  // namespace

void adamw(const Arguments& a) {
  for (std::size_t i = 0; i + 3 < a.size(); i += 4) with_type(a.dtype(i), [&]<class T>(Type<T>) { update<T>(a, i); });
}

}  // namespace stepcast::real::host::kernels
