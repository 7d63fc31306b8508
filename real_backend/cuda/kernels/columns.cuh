// Sums over the rows of a matrix, column by column, in an order that does not depend on the device: chunks of rows first, then over the chunks.
#pragma once

#include <grid.cuh>

#include "real_backend/cuda/kernels/arguments.hpp"

namespace stepcast::real::cuda::kernels {

inline constexpr std::int64_t kRowsOfChunk = 64;

/// term(row, column), summed over the rows of one chunk.
template <class S, class Term>
struct SumOfChunk {
  Term term;
  Global<S> partial;
  std::int64_t rows, columns;
  STEPCAST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t begin = i / columns * kRowsOfChunk, end = begin + kRowsOfChunk < rows ? begin + kRowsOfChunk : rows;
    S sum = 0;
    for (std::int64_t row = begin; row < end; ++row) sum += term(row, i % columns);
    partial[i] = sum;
  }
};

template <class T>
struct SumOfChunks {
  Global<const Sum<T>> partial;
  Global<T> out;
  std::int64_t chunks, columns;
  STEPCAST_DEVICE void operator()(std::int64_t column) const {
    Sum<T> sum = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += partial[chunk * columns + column];
    out[column] = static_cast<T>(sum);
  }
};

/// out[column] = the sum of term(row, column) over the rows. Uses the lane's first scratch.
template <class T, class Term>
void sum_columns(const Arguments& a, Term term, T* out) {
  using S = Sum<T>;
  const std::int64_t rows = a.at().rows, columns = a.at().columns, chunks = (rows + kRowsOfChunk - 1) / kRowsOfChunk;
  S* partial = a.lane.scratch().get<S>(0, chunks * columns);
  for_elements(a.stream(), chunks * columns, SumOfChunk<S, Term>{term, partial, rows, columns});
  for_elements(a.stream(), columns, SumOfChunks<T>{partial, out, chunks, columns});
}

}  // namespace stepcast::real::cuda::kernels
