// Tokens, embedding, positions and the loss.
#include <cmath>

#include "real_backend/host/kernels/arguments.hpp"

namespace stepcast::real::host::kernels {

/// This rank's sequences of the micro-batch: their tokens, or those behind them.
void load_input(const Arguments& a) {
  const Training& training = a.environment.training;
  const Moment& moment = a.environment.moment;
  auto* out = a.pointer<std::int64_t>(0);
  const std::int64_t first = training.first_sequence(moment.micro_batch, a.environment.rank);
  for (std::int64_t i = 0; i < a.count(0); ++i) out[i] = training.token(moment.step, first + i / training.seq_len, i % training.seq_len + a.at().index);
}

void embedding(const Arguments& a) {
  with_type(a.dtype(1), [&]<class T>(Type<T>) {
    const std::int64_t width = a.at().columns;
    const auto* ids = a.pointer<const std::int64_t>(0);
    for (std::int64_t row = 0; row < a.at().rows; ++row) Array<T>(a.pointer<T>(2) + row * width, width) = Array<T>(a.pointer<T>(1) + ids[row] * width, width);
  });
}

namespace {

/// Adds rows of `from` to rows of a table, in the type of sums.
template <class T, class RowOf>
void scatter(const Arguments& a, std::size_t from, std::size_t table, bool accumulate, RowOf row_of) {
  using S = Sum<T>;
  const std::int64_t width = a.at().columns, count = a.count(table);
  S* sums = std::is_same_v<T, S> ? reinterpret_cast<S*>(a.pointer<T>(table)) : a.scratch.get<S>(0, count);
  if (!accumulate) Array<S>(sums, count).setZero();
  else if constexpr (!std::is_same_v<T, S>) Array<S>(sums, count) = a.array<T>(table).template cast<S>();
  for (std::int64_t row = 0; row < a.at().rows; ++row)
    Array<S>(sums + row_of(row) * width, width) += Array<T>(a.pointer<T>(from) + row * width, width).template cast<S>();
  if constexpr (!std::is_same_v<T, S>) a.array<T>(table) = Array<S>(sums, count).template cast<T>();
}

}  // namespace

void embedding_backward(const Arguments& a) {
  with_type(a.dtype(2), [&]<class T>(Type<T>) {
    const auto* ids = a.pointer<const std::int64_t>(0);
    scatter<T>(a, 1, 2, a.at().accumulate, [ids](std::int64_t row) { return ids[row]; });
  });
}

void add_positions(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    const std::int64_t width = a.at().columns;
    const auto line = [&](std::size_t part, std::int64_t row) { return Array<T>(a.pointer<T>(part) + row * width, width); };
    for (std::int64_t row = 0; row < a.at().rows; ++row)
      line(2, row) = (line(0, row).template cast<Sum<T>>() + line(1, row % a.at().seq_len).template cast<Sum<T>>()).template cast<T>();
  });
}

void positions_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { scatter<T>(a, 0, 1, false, [&](std::int64_t row) { return row % a.at().seq_len; }); });
}

void cross_entropy(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    using S = Sum<T>;
    const std::int64_t width = a.at().columns;
    const auto* labels = a.pointer<const std::int64_t>(1);
    double total = 0;
    Array<S> x(a.scratch.get<S>(0, width), width);
    for (std::int64_t row = 0; row < a.at().rows; ++row) {
      x = Array<T>(a.pointer<T>(0) + row * width, width).template cast<S>();
      const S most = x.maxCoeff(), lse = most + std::log((x - most).exp().sum());
      a.pointer<S>(2)[row] = lse;
      total += static_cast<double>(lse - x[labels[row]]);
    }
    if (!std::isfinite(total)) throw std::runtime_error("the loss is not a finite number in step " + std::to_string(a.environment.moment.step));
    a.pointer<double>(3)[program::kMetricsPerStep * a.environment.moment.step] += a.at().factor * total;
  });
}

void cross_entropy_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    using S = Sum<T>;
    const std::int64_t width = a.at().columns;
    const auto factor = static_cast<S>(a.at().factor);
    const auto* labels = a.pointer<const std::int64_t>(1);
    Array<S> x(a.scratch.get<S>(0, width), width);
    for (std::int64_t row = 0; row < a.at().rows; ++row) {
      x = Array<T>(a.pointer<T>(0) + row * width, width).template cast<S>();
      x = (x - a.pointer<S>(2)[row]).exp() * factor;
      x[labels[row]] -= factor;
      Array<T>(a.pointer<T>(3) + row * width, width) = x.template cast<T>();
    }
  });
}

}  // namespace stepcast::real::host::kernels
