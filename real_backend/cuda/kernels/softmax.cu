// See softmax.hpp.
#include "real_backend/cuda/kernels/softmax.hpp"

#include <grid.cuh>

#include <cmath>

namespace stepcast::real::cuda::kernels {
namespace {

/// Keys that a query sees: its own and those before it, as far as the window goes.
struct Mask {
  std::int64_t window;
  STEPCAST_DEVICE std::int64_t first(std::int64_t query) const { return window > 0 && query >= window ? query - window + 1 : 0; }
  STEPCAST_DEVICE bool sees(std::int64_t query, std::int64_t key) const { return key <= query && key >= first(query); }
};

/// Row `i` is query i % length of head i / length of the group.
template <class T>
struct Softmax {
  using S = Sum<T>;
  Global<const S> scores;
  Global<T> probabilities;
  Global<S> lse;  // of the group's first row and head
  std::int64_t length, all_heads;
  Mask mask;
  S scale;

  STEPCAST_DEVICE void operator()(const Block& block, std::int64_t i) const {
    const std::int64_t query = i % length, head = i / length, first = mask.first(query);
    S most = -static_cast<S>(INFINITY), total = 0;
    for (std::int64_t key = first + block.first(); key <= query; key += block.step()) {
      const S score = scores[i * length + key] * scale;
      most = score > most ? score : most;
    }
    most = block.most(most);
    for (std::int64_t key = first + block.first(); key <= query; key += block.step()) total += std::exp(scores[i * length + key] * scale - most);
    total = block.sum(total);
    for (std::int64_t key = block.first(); key < length; key += block.step())
      probabilities[i * length + key] = static_cast<T>(mask.sees(query, key) ? std::exp(scores[i * length + key] * scale - most) / total : S(0));
    if (block.first() == 0) lse[query * all_heads + head] = most + std::log(total);
  }
};

/// With p the probabilities and D = rowsum(d_out out): d_s = p (d_p - D) scale.
template <class T>
struct SoftmaxBackward {
  using S = Sum<T>;
  Global<const S> scores, d_probabilities, lse;
  Global<const T> d_out, out;  // of the group's first row and head
  Global<T> probabilities, d_scores;
  std::int64_t length, all_heads, head_dim;
  Mask mask;
  S scale;

  STEPCAST_DEVICE void operator()(const Block& block, std::int64_t i) const {
    const std::int64_t query = i % length, head = i / length, row = (query * all_heads + head) * head_dim;
    S share = 0;
    for (std::int64_t c = block.first(); c < head_dim; c += block.step()) share += static_cast<S>(d_out[row + c]) * static_cast<S>(out[row + c]);
    share = block.sum(share);
    const S log_sum = lse[query * all_heads + head];
    for (std::int64_t key = block.first(); key < length; key += block.step()) {
      const std::int64_t place = i * length + key;
      const S p = mask.sees(query, key) ? std::exp(scores[place] * scale - log_sum) : S(0);
      probabilities[place] = static_cast<T>(p);
      d_scores[place] = static_cast<T>(mask.sees(query, key) ? p * (d_probabilities[place] - share) * scale : S(0));
    }
  }
};

template <class T>
struct StoreRows {
  Global<const Sum<T>> rows;
  Global<T> to;
  std::int64_t width, stride;
  STEPCAST_DEVICE void operator()(std::int64_t i) const { to[i / width * stride + i % width] = static_cast<T>(rows[i]); }
};

template <class S>
S scale_of(const program::Attributes& at) {
  return S(1) / std::sqrt(static_cast<S>(at.head_dim));
}

}  // namespace

template <class T>
void softmax(const Arguments& a, const HeadGroup& group, const Sum<T>* scores, T* probabilities) {
  const program::Attributes& at = a.at();
  Sum<T>* lse = a.pointer<Sum<T>>(4) + group.row * at.heads + group.head;
  for_rows(a.stream(), group.heads * at.seq_len, Softmax<T>{scores, probabilities, lse, at.seq_len, at.heads, {at.window}, scale_of<Sum<T>>(at)});
}

template <class T>
void softmax_backward(const Arguments& a, const HeadGroup& group, const Sum<T>* scores, const Sum<T>* d_probabilities, T* probabilities, T* d_scores) {
  const program::Attributes& at = a.at();
  const std::int64_t head = group.row * at.heads + group.head;
  for_rows(a.stream(), group.heads * at.seq_len,
           SoftmaxBackward<T>{scores,
                              d_probabilities,
                              a.pointer<const Sum<T>>(5) + head,
                              a.pointer<const T>(0) + head * at.head_dim,
                              a.pointer<const T>(4) + head * at.head_dim,
                              probabilities,
                              d_scores,
                              at.seq_len,
                              at.heads,
                              at.head_dim,
                              {at.window},
                              scale_of<Sum<T>>(at)});
}

template <class T>
void store_rows(const Arguments& a, const Sum<T>* rows, T* to) {
  for_elements(a.stream(), a.at().seq_len * a.at().head_dim, StoreRows<T>{rows, to, a.at().head_dim, a.at().kv_stride});
}

template void softmax(const Arguments&, const HeadGroup&, const double*, double*);
template void softmax(const Arguments&, const HeadGroup&, const float*, float*);
template void softmax(const Arguments&, const HeadGroup&, const float*, Bf16*);
template void softmax_backward(const Arguments&, const HeadGroup&, const double*, const double*, double*, double*);
template void softmax_backward(const Arguments&, const HeadGroup&, const float*, const float*, float*, float*);
template void softmax_backward(const Arguments&, const HeadGroup&, const float*, const float*, Bf16*, Bf16*);
template void store_rows(const Arguments&, const double*, double*);
template void store_rows(const Arguments&, const float*, float*);
template void store_rows(const Arguments&, const float*, Bf16*);

}  // namespace stepcast::real::cuda::kernels
