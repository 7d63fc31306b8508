// Causal attention as products by cuBLAS and a softmax between them. Scores of the heads that share keys and values lie in scratch, for one sequence at a time; in bf16 the
// probabilities are rounded before they meet the values, as fused kernels do.
#include "real_backend/cuda/kernels/blas.hpp"
#include "real_backend/cuda/kernels/softmax.hpp"

namespace stepcast::real::cuda::kernels {
namespace {

/// Matrices length x length, one for each head of a group, in scratch: in the type of sums and in that of the tensors.
enum Place : std::size_t { kScores, kProbabilities, kDProbabilities, kDScores, kDKey, kDValue };

template <class T>
class Attention {
 public:
  using S = Sum<T>;
  explicit Attention(const Arguments& a) : a_(a), at_(a.at()), per_key_(at_.heads / at_.kv_heads) {}

  /// Calls f for all groups, with the place of the group's queries (or what lies like them) and of its keys.
  template <class F>
  void for_groups(F f) const {
    for (std::int64_t row = 0; row < at_.rows; row += at_.seq_len) {
      for (std::int64_t kv = 0; kv < at_.kv_heads; ++kv) {
        const std::int64_t head = kv * per_key_;
        f(HeadGroup{head, row, per_key_}, row * at_.stride + head * at_.head_dim, row * at_.kv_stride + kv * at_.head_dim,
          (row * at_.heads + head) * at_.head_dim);
      }
    }
  }

  void forward() const {
    S* scores = squares<S>(kScores);
    T* probabilities = squares<T>(kProbabilities);
    for_groups([&](const HeadGroup& group, std::int64_t q, std::int64_t k, std::int64_t out) {
      multiply(a_.lane, {at_.seq_len, at_.seq_len, at_.head_dim, per_key_}, queries(0, q), transposed(keys(1, k)), square(scores));
      softmax<T>(a_, group, scores, probabilities);
      multiply(a_.lane, {at_.seq_len, at_.head_dim, at_.seq_len, per_key_}, as_factor(square(probabilities)), keys(2, k),
               {a_.pointer<T>(3) + out, a_.dtype(3), at_.heads * at_.head_dim, at_.head_dim});
    });
  }

  /// d_v = p' d_out, d_p = d_out v', d_q = d_s k, d_k = d_s' q.
  void backward() const {
    S *scores = squares<S>(kScores), *d_probabilities = squares<S>(kDProbabilities);
    T *probabilities = squares<T>(kProbabilities), *d_scores = squares<T>(kDScores);
    for_groups([&](const HeadGroup& group, std::int64_t q, std::int64_t k, std::int64_t out) {
      const Factor d_out{a_.pointer<T>(0) + out, a_.dtype(0), at_.heads * at_.head_dim, at_.head_dim};
      multiply(a_.lane, {at_.seq_len, at_.seq_len, at_.head_dim, per_key_}, queries(1, q), transposed(keys(2, k)), square(scores));
      multiply(a_.lane, {at_.seq_len, at_.seq_len, at_.head_dim, per_key_}, d_out, transposed(keys(3, k)), square(d_probabilities));
      softmax_backward<T>(a_, group, scores, d_probabilities, probabilities, d_scores);
      multiply(a_.lane, {at_.seq_len, at_.head_dim, at_.seq_len, per_key_}, as_factor(square(d_scores)), keys(2, k),
               {a_.pointer<T>(6) + q, a_.dtype(6), at_.stride, at_.head_dim});
      add_heads(kDKey, d_scores, queries(1, q), a_.pointer<T>(7) + k);
      add_heads(kDValue, probabilities, d_out, a_.pointer<T>(8) + k);
    });
  }

 private:
  template <class N>
  [[nodiscard]] N* squares(Place place) const {
    return a_.lane.scratch().get<N>(place, per_key_ * at_.seq_len * at_.seq_len);
  }
  template <class N>
  [[nodiscard]] Result square(N* data) const {
    return {data, dtype<N>(), at_.seq_len, at_.seq_len * at_.seq_len};
  }
  template <class N>
  [[nodiscard]] hw::Dtype dtype() const {
    return std::is_same_v<N, T> ? a_.dtype(0) : hw::Dtype::fp32;
  }
  [[nodiscard]] static Factor as_factor(const Result& r) { return {r.data, r.dtype, r.stride, r.step, false}; }
  [[nodiscard]] static Factor transposed(Factor factor) {
    factor.transposed = true;
    return factor;
  }
  [[nodiscard]] Factor queries(std::size_t part, std::int64_t begin) const { return {a_.pointer<T>(part) + begin, a_.dtype(part), at_.stride, at_.head_dim}; }
  [[nodiscard]] Factor keys(std::size_t part, std::int64_t begin) const { return {a_.pointer<T>(part) + begin, a_.dtype(part), at_.kv_stride, 0}; }

  /// The sum over the group's heads of (matrix of the head)' rows, formed in the type of sums and rounded once.
  void add_heads(Place place, T* matrices, Factor rows, T* to) const {
    S* sum = a_.lane.scratch().get<S>(place, at_.seq_len * at_.head_dim);
    for (std::int64_t head = 0; head < per_key_; ++head) {
      const Factor matrix = transposed(as_factor(square(matrices + head * at_.seq_len * at_.seq_len)));
      multiply(a_.lane, {at_.seq_len, at_.head_dim, at_.seq_len, 1, head > 0}, matrix, rows, {sum, dtype<S>(), at_.head_dim, 0});
      rows.data = static_cast<const T*>(rows.data) + rows.step;
    }
    store_rows<T>(a_, sum, to);
  }

  const Arguments& a_;
  const program::Attributes& at_;
  std::int64_t per_key_;
};

}  // namespace

void attention(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { Attention<T>(a).forward(); });
}

void attention_backward(const Arguments& a) {
  with_type(a.dtype(0), [&]<class T>(Type<T>) { Attention<T>(a).backward(); });
}

}  // namespace stepcast::real::cuda::kernels
