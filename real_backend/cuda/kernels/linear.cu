// What linear layers need beside the product: the bias, and its gradient.
#include "real_backend/cuda/kernels/columns.cuh"

namespace stepcast::real::cuda::kernels {
namespace {

template <class T>
struct AddBias {
  using S = Sum<T>;
  Global<T> c;
  Global<const T> bias;
  std::int64_t columns;
  STEPCAST_DEVICE void operator()(std::int64_t i) const { c[i] = static_cast<T>(static_cast<S>(c[i]) + static_cast<S>(bias[i % columns])); }
};

template <class T>
struct Element {
  Global<const T> x;
  std::int64_t columns;
  STEPCAST_DEVICE Sum<T> operator()(std::int64_t row, std::int64_t column) const { return static_cast<Sum<T>>(x[row * columns + column]); }
};

}  // namespace

void add_bias(const Arguments& a) {
  with_type(a.dtype(2), [&]<class T>(Type<T>) {
    for_elements(a.stream(), a.at().rows * a.at().columns, AddBias<T>{a.pointer<T>(2), a.pointer<const T>(3), a.at().columns});
  });
}

void column_sum(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { sum_columns(a, Element<T>{a.pointer<const T>(0), a.at().columns}, a.pointer<T>(1)); });
}

}  // namespace stepcast::real::cuda::kernels
