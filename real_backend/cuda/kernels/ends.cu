// Tokens, embedding, positions and the loss.
#include <cmath>

#include "real_backend/cuda/kernels/columns.cuh"

namespace stepcast::real::cuda::kernels {

/// This rank's sequences of the micro-batch: their tokens, or those behind them; from pinned memory, as a data loader would bring them.
void load_input(const Arguments& a) {
  const Training& training = a.environment.training;
  const Moment& moment = a.environment.moment;
  auto* staged = reinterpret_cast<std::int64_t*>(a.lane.staging(a.bytes(0)));
  const std::int64_t first = training.first_sequence(moment.micro_batch, a.environment.rank);
  for (std::int64_t i = 0; i < a.count(0); ++i) staged[i] = training.token(moment.step, first + i / training.seq_len, i % training.seq_len + a.at().index);
  check(cudaMemcpyAsync(a.parts[0], staged, static_cast<std::size_t>(a.bytes(0)), cudaMemcpyHostToDevice, a.stream()), "cudaMemcpyAsync");
}

namespace {

template <class T>
struct Embedding {
  Global<const std::int64_t> ids;
  Global<const T> table;
  Global<T> out;
  std::int64_t width;
  STEPCAST_DEVICE void operator()(const Block& block, std::int64_t row) const {
    const std::int64_t from = ids[row] * width;
    for (std::int64_t i = block.first(); i < width; i += block.step()) out[row * width + i] = table[from + i];
  }
};

/// Rows with the same id are chained in their order, so that sums over them need no atomics and always give the same bits: `next` of a row, -1 at the end; `begins` says whether
/// the chain begins here.
struct Chain {
  Global<const std::int64_t> ids;
  Global<std::int64_t> next, begins;
  std::int64_t rows;
  STEPCAST_DEVICE void operator()(std::int64_t row) const {
    const std::int64_t id = ids[row];
    std::int64_t before = row - 1, behind = row + 1;
    while (before >= 0 && ids[before] != id) --before;
    while (behind < rows && ids[behind] != id) ++behind;
    begins[row] = before < 0 ? 1 : 0;
    next[row] = behind < rows ? behind : -1;
  }
};

template <class T>
struct AddChains {
  using S = Sum<T>;
  Global<const std::int64_t> ids, next, begins;
  Global<const T> from;
  Global<T> table;
  std::int64_t width;
  bool accumulate;
  STEPCAST_DEVICE void operator()(const Block& block, std::int64_t first) const {
    if (begins[first] == 0) return;
    const std::int64_t to = ids[first] * width;
    for (std::int64_t i = block.first(); i < width; i += block.step()) {
      S sum = accumulate ? static_cast<S>(table[to + i]) : S(0);
      for (std::int64_t row = first; row >= 0; row = next[row]) sum += static_cast<S>(from[row * width + i]);
      table[to + i] = static_cast<T>(sum);
    }
  }
};

template <class T>
struct AddPositions {
  using S = Sum<T>;
  Global<const T> x, table;
  Global<T> out;
  std::int64_t width, length;
  STEPCAST_DEVICE void operator()(std::int64_t i) const { out[i] = static_cast<T>(static_cast<S>(x[i]) + static_cast<S>(table[i % (length * width)])); }
};

template <class T>
struct PositionsBackward {
  using S = Sum<T>;
  Global<const T> d_out;
  Global<T> d_table;
  std::int64_t rows, width, length;
  STEPCAST_DEVICE void operator()(std::int64_t i) const {
    S sum = 0;
    for (std::int64_t row = i / width; row < rows; row += length) sum += static_cast<S>(d_out[row * width + i % width]);
    d_table[i] = static_cast<T>(sum);
  }
};

void clear(const Arguments& a, std::size_t part) {
  check(cudaMemsetAsync(a.parts[part], 0, static_cast<std::size_t>(a.bytes(part)), a.stream()), "cudaMemsetAsync");
}

}  // namespace

void embedding(const Arguments& a) {
  with_type(a.dtype(1), [&]<class T>(Type<T>) {
    for_rows(a.stream(), a.at().rows, Embedding<T>{a.pointer<const std::int64_t>(0), a.pointer<const T>(1), a.pointer<T>(2), a.at().columns});
  });
}

void embedding_backward(const Arguments& a) {
  const auto* ids = a.pointer<const std::int64_t>(0);
  const std::int64_t rows = a.at().rows;
  auto *next = a.lane.scratch().get<std::int64_t>(0, rows), *begins = a.lane.scratch().get<std::int64_t>(1, rows);
  if (!a.at().accumulate) clear(a, 2);
  for_elements(a.stream(), rows, Chain{ids, next, begins, rows});
  with_type(a.dtype(2), [&]<class T>(Type<T>) {
    for_rows(a.stream(), rows, AddChains<T>{ids, next, begins, a.pointer<const T>(1), a.pointer<T>(2), a.at().columns, a.at().accumulate});
  });
}

void add_positions(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    for_elements(a.stream(), a.at().rows * a.at().columns,
                 AddPositions<T>{a.pointer<const T>(0), a.pointer<const T>(1), a.pointer<T>(2), a.at().columns, a.at().seq_len});
  });
}

void positions_backward(const Arguments& a) {
  clear(a, 1);
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    for_elements(a.stream(), a.at().seq_len * a.at().columns,
                 PositionsBackward<T>{a.pointer<const T>(0), a.pointer<T>(1), a.at().rows, a.at().columns, a.at().seq_len});
  });
}

namespace {

template <class T>
struct CrossEntropy {
  using S = Sum<T>;
  Global<const T> logits;
  Global<const std::int64_t> labels;
  Global<S> lse;
  Global<double> losses;
  std::int64_t width;
  STEPCAST_DEVICE void operator()(const Block& block, std::int64_t row) const {
    S most = -static_cast<S>(INFINITY), total = 0;
    for (std::int64_t i = block.first(); i < width; i += block.step()) {
      const S x = static_cast<S>(logits[row * width + i]);
      most = x > most ? x : most;
    }
    most = block.most(most);
    for (std::int64_t i = block.first(); i < width; i += block.step()) total += std::exp(static_cast<S>(logits[row * width + i]) - most);
    const S log_sum = most + std::log(block.sum(total));
    if (block.first() != 0) return;
    lse[row] = log_sum;
    losses[row] = static_cast<double>(log_sum - static_cast<S>(logits[row * width + labels[row]]));
  }
};

/// One block over all rows.
struct AddLosses {
  Global<const double> losses;
  Global<double> loss;
  std::int64_t rows;
  double factor;
  STEPCAST_DEVICE void operator()(const Block& block, std::int64_t) const {
    double total = 0;
    for (std::int64_t row = block.first(); row < rows; row += block.step()) total += losses[row];
    total = block.sum(total);
    if (block.first() == 0) loss[0] += factor * total;
  }
};

template <class T>
struct CrossEntropyBackward {
  using S = Sum<T>;
  Global<const T> logits;
  Global<const std::int64_t> labels;
  Global<const S> lse;
  Global<T> d_logits;
  std::int64_t width;
  S factor;
  STEPCAST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / width;
    const S share = std::exp(static_cast<S>(logits[i]) - lse[row]) * factor;
    d_logits[i] = static_cast<T>(i % width == labels[row] ? share - factor : share);
  }
};

}  // namespace

void cross_entropy(const Arguments& a) {
  const std::int64_t rows = a.at().rows;
  auto* losses = a.lane.scratch().get<double>(0, rows);
  double* loss = a.pointer<double>(3) + program::kMetricsPerStep * a.environment.moment.step;
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    for_rows(a.stream(), rows, CrossEntropy<T>{a.pointer<const T>(0), a.pointer<const std::int64_t>(1), a.pointer<Sum<T>>(2), losses, a.at().columns});
  });
  for_rows(a.stream(), 1, AddLosses{losses, loss, rows, a.at().factor});
}

void cross_entropy_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) {
    for_elements(a.stream(), a.at().rows * a.at().columns,
                 CrossEntropyBackward<T>{a.pointer<const T>(0), a.pointer<const std::int64_t>(1), a.pointer<const Sum<T>>(2), a.pointer<T>(3), a.at().columns,
                                         static_cast<Sum<T>>(a.at().factor)});
  });
}

}  // namespace stepcast::real::cuda::kernels
