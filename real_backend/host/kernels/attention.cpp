// Rotary positions (Su et al., 2021), and causal attention by blocks of queries, whose scores are never stored as a whole and are rebuilt from the log-sum-exp in the
// backward (Dao et al., 2022).
#include <algorithm>
#include <cmath>
#include <limits>

#include "real_backend/host/kernels/arguments.hpp"

namespace stepcast::real::host::kernels {
namespace {

constexpr double kBase = 10000;
constexpr std::int64_t kQueries = 64;  // of a block

/// Made anew when the length or the head differs from the last ones.
const Angles& angles(const Arguments& a) {
  Angles& known = a.scratch.angles;
  const std::int64_t length = a.at().seq_len, half = a.at().head_dim / 2;
  if (known.seq_len == length && known.head_dim == a.at().head_dim) return known;
  known = {length, a.at().head_dim, std::vector<double>(static_cast<std::size_t>(length * half)), std::vector<double>(static_cast<std::size_t>(length * half))};
  for (std::int64_t j = 0; j < half; ++j) {
    const double rate = std::pow(kBase, -2.0 * static_cast<double>(j) / static_cast<double>(a.at().head_dim));
    for (std::int64_t t = 0; t < length; ++t) {
      known.cosines[static_cast<std::size_t>(t * half + j)] = std::cos(static_cast<double>(t) * rate);
      known.sines[static_cast<std::size_t>(t * half + j)] = std::sin(static_cast<double>(t) * rate);
    }
  }
  return known;
}

template <class T>
void rotate(const Arguments& a) {
  using S = Sum<T>;
  const program::Attributes& at = a.at();
  const std::int64_t half = at.head_dim / 2, width = at.all_heads * at.head_dim, turned = at.heads * at.head_dim;
  const Angles& table = angles(a);
  const auto direction = static_cast<S>(at.factor);
  for (std::int64_t row = 0; row < at.rows; ++row) {
    const T* x = a.pointer<T>(0) + row * width;
    T* out = a.pointer<T>(1) + row * width;
    const double *cosine = table.cosines.data() + row % at.seq_len * half, *sine = table.sines.data() + row % at.seq_len * half;
    for (std::int64_t head = 0; head < turned; head += at.head_dim) {
      for (std::int64_t j = 0; j < half; ++j) {
        const S first = S(x[head + j]), second = S(x[head + j + half]), c = static_cast<S>(cosine[j]), s = direction * static_cast<S>(sine[j]);
        out[head + j] = static_cast<T>(first * c - second * s);
        out[head + j + half] = static_cast<T>(second * c + first * s);
      }
    }
    std::copy(x + turned, x + width, out + turned);
  }
}

/// Rows of one head, widened: `count` rows of head_dim elements from a tensor with rows of `stride`.
template <class S, class T>
Matrix<S> load(const Arguments& a, std::size_t place, const T* from, std::int64_t count, std::int64_t stride) {
  const std::int64_t d = a.at().head_dim;
  Matrix<S> to(a.scratch.get<S>(place, count * d), count, d, Eigen::OuterStride<>(d));
  to = ConstMatrix<T>(from, count, d, Eigen::OuterStride<>(stride)).template cast<S>();
  return to;
}

template <class S, class T>
void store(const Arguments& a, const Matrix<S>& from, T* to, std::int64_t stride) {
  Matrix<T>(to, from.rows(), a.at().head_dim, Eigen::OuterStride<>(stride)) = from.template cast<T>();
}

/// Keys that a block of queries sees: [begin, end).
struct Keys {
  std::int64_t begin, end;
};

Keys seen(const program::Attributes& at, std::int64_t first_query, std::int64_t last_query) {
  return {at.window > 0 ? std::max(std::int64_t{0}, first_query - at.window + 1) : 0, last_query + 1};
}

/// Scaled scores of a block of queries, -inf where masked.
template <class S>
void scores(const program::Attributes& at, const Matrix<S>& q, const Matrix<S>& k, std::int64_t first, Keys keys, Matrix<S>& result) {
  const S scale = S(1) / std::sqrt(static_cast<S>(at.head_dim));
  result.noalias() = q * k.middleRows(keys.begin, keys.end - keys.begin).transpose();
  result *= scale;
  for (std::int64_t i = 0; i < q.rows(); ++i) {
    const std::int64_t query = first + i, from = at.window > 0 ? std::max(keys.begin, query - at.window + 1) : keys.begin;
    const S masked = -std::numeric_limits<S>::infinity();
    for (std::int64_t j = keys.begin; j < from; ++j) result(i, j - keys.begin) = masked;
    for (std::int64_t j = query + 1; j < keys.end; ++j) result(i, j - keys.begin) = masked;
  }
}

/// One head of one sequence, and where its rows begin in the tensors.
template <class T>
struct Head {
  std::int64_t row, head;
  const T *q, *k, *v;
};

/// Calls f for the heads of queries that share keys and values, with begin = true for the first and end = true for the last of them.
template <class T, class F>
void for_heads(const Arguments& a, std::size_t q_part, F f) {
  const program::Attributes& at = a.at();
  const std::int64_t per_key = at.heads / at.kv_heads;
  for (std::int64_t row = 0; row < at.rows; row += at.seq_len) {
    for (std::int64_t head = 0; head < at.heads; ++head) {
      const std::int64_t kv = head / per_key * at.head_dim;
      f(Head<T>{row, head, a.pointer<T>(q_part) + row * at.stride + head * at.head_dim, a.pointer<T>(q_part + 1) + row * at.kv_stride + kv,
                a.pointer<T>(q_part + 2) + row * at.kv_stride + kv},
        head % per_key == 0, head % per_key == per_key - 1);
    }
  }
}

template <class T>
void forward_head(const Arguments& a, const Head<T>& h) {
  using S = Sum<T>;
  const program::Attributes& at = a.at();
  const std::int64_t s = at.seq_len, d = at.head_dim, out_stride = at.heads * d;
  const Matrix<S> k = load<S>(a, 1, h.k, s, at.kv_stride), v = load<S>(a, 2, h.v, s, at.kv_stride);
  for (std::int64_t first = 0; first < s; first += kQueries) {
    const std::int64_t n = std::min(kQueries, s - first);
    const Keys keys = seen(at, first, first + n - 1);
    const std::int64_t width = keys.end - keys.begin;
    const Matrix<S> q = load<S>(a, 0, h.q + first * at.stride, n, at.stride);
    Matrix<S> p(a.scratch.get<S>(3, n * width), n, width, Eigen::OuterStride<>(width));
    scores(at, q, k, first, keys, p);
    S* lse = a.pointer<S>(4);
    for (std::int64_t i = 0; i < n; ++i) {
      const S most = p.row(i).maxCoeff();
      p.row(i) = (p.row(i).array() - most).exp().matrix();
      const S total = p.row(i).sum();
      p.row(i) /= total;
      lse[(h.row + first + i) * at.heads + h.head] = most + std::log(total);
    }
    Matrix<S> out(a.scratch.get<S>(4, n * d), n, d, Eigen::OuterStride<>(d));
    out.noalias() = p * v.middleRows(keys.begin, width);
    store(a, out, a.pointer<T>(3) + (h.row + first) * out_stride + h.head * d, out_stride);
  }
}

/// With p the probabilities and D = rowsum(d_out out): d_v = p' d_out, d_s = p (d_out v' - D), d_q = d_s k, d_k = d_s' q.
template <class T>
void backward_head(const Arguments& a, const Head<T>& h, bool begin, bool end) {
  using S = Sum<T>;
  const program::Attributes& at = a.at();
  const std::int64_t s = at.seq_len, d = at.head_dim, out_stride = at.heads * d;
  const S scale = S(1) / std::sqrt(static_cast<S>(d));
  const auto matrix = [&](std::size_t place, std::int64_t rows, std::int64_t columns) {
    return Matrix<S>(a.scratch.get<S>(place, rows * columns), rows, columns, Eigen::OuterStride<>(columns));
  };
  const Matrix<S> k = load<S>(a, 1, h.k, s, at.kv_stride), v = load<S>(a, 2, h.v, s, at.kv_stride);
  Matrix<S> d_k = matrix(8, s, d), d_v = matrix(9, s, d);
  if (begin) d_k.setZero(), d_v.setZero();
  for (std::int64_t first = 0; first < s; first += kQueries) {
    const std::int64_t n = std::min(kQueries, s - first), place = (h.row + first) * out_stride + h.head * d;
    const Keys keys = seen(at, first, first + n - 1);
    const std::int64_t width = keys.end - keys.begin;
    const Matrix<S> q = load<S>(a, 0, h.q + first * at.stride, n, at.stride);
    const Matrix<S> d_out = load<S>(a, 4, a.pointer<T>(0) + place, n, out_stride), out = load<S>(a, 5, a.pointer<T>(4) + place, n, out_stride);
    Matrix<S> p = matrix(3, n, width), d_p = matrix(6, n, width), d_q = matrix(7, n, d);
    scores(at, q, k, first, keys, p);
    for (std::int64_t i = 0; i < n; ++i) p.row(i) = (p.row(i).array() - a.pointer<S>(5)[(h.row + first + i) * at.heads + h.head]).exp().matrix();
    d_v.middleRows(keys.begin, width).noalias() += p.transpose() * d_out;
    d_p.noalias() = d_out * v.middleRows(keys.begin, width).transpose();
    for (std::int64_t i = 0; i < n; ++i) {
      const S share = d_out.row(i).dot(out.row(i));
      d_p.row(i) = (p.row(i).array() * (d_p.row(i).array() - share) * scale).matrix();
    }
    d_q.noalias() = d_p * k.middleRows(keys.begin, width);
    d_k.middleRows(keys.begin, width).noalias() += d_p.transpose() * q;
    store(a, d_q, a.pointer<T>(6) + (h.row + first) * at.stride + h.head * d, at.stride);
  }
  if (!end) return;
  const std::int64_t kv = h.row * at.kv_stride + h.head / (at.heads / at.kv_heads) * d;
  store(a, d_k, a.pointer<T>(7) + kv, at.kv_stride);
  store(a, d_v, a.pointer<T>(8) + kv, at.kv_stride);
}

}  // namespace

void rope(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { rotate<T>(a); });
}

void attention(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { for_heads<T>(a, 0, [&](const Head<T>& h, bool, bool) { forward_head<T>(a, h); }); });
}

void attention_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { for_heads<T>(a, 1, [&](const Head<T>& h, bool begin, bool end) { backward_head<T>(a, h, begin, end); }); });
}

}  // namespace stepcast::real::host::kernels
