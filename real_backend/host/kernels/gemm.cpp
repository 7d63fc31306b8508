// Matrix products by Eigen. bf16 operands are widened to fp32 first, which is exact.
#include "real_backend/host/kernels/arguments.hpp"

namespace stepcast::real::host::kernels {
namespace {

template <class S>
struct Product {
  ConstMatrix<S> a, b;
  Matrix<S> c;
  const program::Attributes& at;

  void run() {
    if (at.transpose_a) with(a.transpose());
    else with(a);
  }

 private:
  template <class A>
  void with(const A& left) {
    if (at.transpose_b) store(left, b.transpose());
    else store(left, b);
  }
  template <class A, class B>
  void store(const A& left, const B& right) {
    if (at.accumulate) c.noalias() += left * right;
    else c.noalias() = left * right;
  }
};

template <class S>
ConstMatrix<S> operand(const S* data, bool transposed, std::int64_t rows, std::int64_t columns) {
  if (transposed) std::swap(rows, columns);
  return ConstMatrix<S>(data, rows, columns, Eigen::OuterStride<>(columns));
}

template <class S>
void multiply(const Arguments& args, const S* a, const S* b, S* c) {
  const program::Attributes& at = args.at();
  Product<S>{operand(a, at.transpose_a, at.rows, at.inner), operand(b, at.transpose_b, at.inner, at.columns),
             Matrix<S>(c, at.rows, at.columns, Eigen::OuterStride<>(at.columns)), at}
      .run();
}

template <class T>
const float* widened(const Arguments& args, std::size_t part, std::size_t place) {
  float* wide = args.scratch.get<float>(place, args.count(part));
  Array<float>(wide, args.count(part)) = args.array<T>(part).template cast<float>();
  return wide;
}

template <class T>
void add_bias(const Arguments& args) {
  const program::Attributes& at = args.at();
  if (!args.has(3)) return;
  for (std::int64_t row = 0; row < at.rows; ++row) {
    Array<T> line(args.pointer<T>(2) + row * at.columns, at.columns);
    line = (line.template cast<Sum<T>>() + Array<T>(args.pointer<T>(3), at.columns).template cast<Sum<T>>()).template cast<T>();
  }
}

}  // namespace

void gemm(const Arguments& args) {
  with_type(args.dtype(2), [&]<class T>(Type<T>) {
    if constexpr (std::is_same_v<T, Sum<T>>) {
      multiply<T>(args, args.pointer<T>(0), args.pointer<T>(1), args.pointer<T>(2));
    } else {
      const float *a = widened<T>(args, 0, 0), *b = widened<T>(args, 1, 1);
      float* c = args.scratch.get<float>(2, args.count(2));
      if (args.at().accumulate) widened<T>(args, 2, 2);
      multiply<float>(args, a, b, c);
      args.array<T>(2) = Array<float>(c, args.count(2)).template cast<T>();
    }
    add_bias<T>(args);
  });
}

void column_sum(const Arguments& args) {
  with_type(args.dtype(0), [&]<class T>(Type<T>) {
    const program::Attributes& at = args.at();
    Array<Sum<T>> sum(args.scratch.get<Sum<T>>(0, at.columns), at.columns);
    sum.setZero();
    for (std::int64_t row = 0; row < at.rows; ++row) sum += Array<T>(args.pointer<T>(0) + row * at.columns, at.columns).template cast<Sum<T>>();
    args.array<T>(1) = sum.template cast<T>();
  });
}

}  // namespace stepcast::real::host::kernels
