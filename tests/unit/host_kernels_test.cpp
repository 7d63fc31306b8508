// Kernels of the host driver that no reference run covers: gradients against differences of the forward, attention with a window against a sum written out, types.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "real_backend/host/kernels/run.hpp"
#include "real_backend/host/types.hpp"

namespace stepcast::real::host {
namespace {

using program::Attributes;
using program::Call;
using program::Function;
using program::Part;
using Vector = std::vector<double>;

hw::Dtype type_of(double) { return hw::Dtype::fp64; }
hw::Dtype type_of(float) { return hw::Dtype::fp32; }
hw::Dtype type_of(Eigen::bfloat16) { return hw::Dtype::bf16; }

/// Runs one function on whole vectors.
class Runner {
 public:
  template <class... T>
  void operator()(Function function, const Attributes& attributes, std::vector<T>&... parts) {
    Call call{function, {}, attributes};
    std::vector<std::byte*> pointers;
    (call.parts.push_back(Part{0, type_of(T{}), 0, static_cast<std::int64_t>(parts.size())}), ...);
    (pointers.push_back(parts.empty() ? nullptr : reinterpret_cast<std::byte*>(parts.data())), ...);
    kernels::run(call, pointers, {training, {}, 0}, scratch);
  }
  Training training;
  kernels::Scratch scratch;
};

Vector wave(std::size_t count, double phase) {
  Vector result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = std::sin(1.3 * static_cast<double>(i) + phase);
  return result;
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Central difference of `f` at x in the direction of each element, against a gradient.
template <class F>
void check_gradient(Vector x, const Vector& gradient, F f) {
  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(i);
    const double value = x[i];
    x[i] = value + kStep;
    const double above = f(x);
    x[i] = value - kStep;
    const double below = f(x);
    x[i] = value;
    CHECK(gradient[i] == doctest::Approx((above - below) / (2 * kStep)).epsilon(1e-7));
  }
}

TEST_CASE("gated activations and GELU: gradients are the slopes") {
  Runner run;
  Vector d = wave(6, 0.1), gate = wave(6, 0.5), up = wave(6, 2), out(6), d_gate(6), d_up(6);
  for (const program::Activation activation : {program::Activation::silu, program::Activation::gelu}) {
    const Attributes at{.rows = 2, .columns = 3, .activation = activation, .stride = 3};
    run(Function::gated_backward, at, d, gate, up, d_gate, d_up);
    const auto loss = [&](Vector& g, Vector& u) {
      run(Function::gated, at, g, u, out);
      return dot(d, out);
    };
    check_gradient(gate, d_gate, [&](Vector& g) { return loss(g, up); });
    check_gradient(up, d_up, [&](Vector& u) { return loss(gate, u); });
  }
  run(Function::gelu_backward, {}, d, gate, d_gate);
  check_gradient(gate, d_gate, [&](Vector& x) {
    run(Function::gelu, {}, x, out);
    return dot(d, out);
  });
}

/// Two sequences of 5, 2 heads that share one head of keys and values, a window of 3.
constexpr std::int64_t kLength = 5, kHeads = 2, kWidth = 4, kWindow = 3, kSequences = 2;
const Attributes kAttention{.rows = kSequences * kLength,
                            .heads = kHeads,
                            .kv_heads = 1,
                            .head_dim = kWidth,
                            .seq_len = kLength,
                            .window = kWindow,
                            .stride = kHeads * kWidth,
                            .kv_stride = kWidth};

Vector written_out(const Vector& q, const Vector& k, const Vector& v) {
  Vector out(q.size());
  for (std::int64_t s = 0; s < kSequences; ++s)
    for (std::int64_t h = 0; h < kHeads; ++h)
      for (std::int64_t i = 0; i < kLength; ++i) {
        const auto query = static_cast<std::size_t>(((s * kLength + i) * kHeads + h) * kWidth);
        double total = 0;
        Vector sum(kWidth);
        for (std::int64_t j = std::max(std::int64_t{0}, i - kWindow + 1); j <= i; ++j) {
          const auto key = static_cast<std::size_t>((s * kLength + j) * kWidth);
          double score = 0;
          for (std::size_t c = 0; c < kWidth; ++c) score += q[query + c] * k[key + c];
          const double weight = std::exp(score / std::sqrt(static_cast<double>(kWidth)));
          total += weight;
          for (std::size_t c = 0; c < kWidth; ++c) sum[c] += weight * v[key + c];
        }
        for (std::size_t c = 0; c < kWidth; ++c) out[query + c] = sum[c] / total;
      }
  return out;
}

TEST_CASE("attention with a window and shared keys: the sum written out, and gradients are its slopes") {
  Runner run;
  constexpr std::size_t kQ = kSequences * kLength * kHeads * kWidth, kK = kQ / kHeads;
  Vector q = wave(kQ, 0.1), k = wave(kK, 0.7), v = wave(kK, 1.9), out(kQ), lse(kSequences * kLength * kHeads), d = wave(kQ, 3), d_q(kQ), d_k(kK), d_v(kK);
  run(Function::attention, kAttention, q, k, v, out, lse);
  const Vector expected = written_out(q, k, v);
  for (std::size_t i = 0; i < kQ; ++i) CHECK(out[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  run(Function::attention_backward, kAttention, d, q, k, v, out, lse, d_q, d_k, d_v);
  check_gradient(q, d_q, [&](const Vector& x) { return dot(d, written_out(x, k, v)); });
  check_gradient(k, d_k, [&](const Vector& x) { return dot(d, written_out(q, x, v)); });
  check_gradient(v, d_v, [&](const Vector& x) { return dot(d, written_out(q, k, x)); });
}

TEST_CASE("attention over more queries than one block holds: rows of probabilities sum to one") {
  Runner run;
  constexpr std::int64_t kLong = 150;
  const Attributes at{.rows = kLong, .heads = 1, .kv_heads = 1, .head_dim = 2, .seq_len = kLong, .stride = 2, .kv_stride = 2};
  Vector q = wave(2 * kLong, 0), k = wave(2 * kLong, 1), v(2 * kLong, 1.0), out(2 * kLong), lse(kLong);
  run(Function::attention, at, q, k, v, out, lse);
  for (const double value : out) CHECK(value == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("attention over several blocks of queries, with and without a window: gradients along a direction") {
  Runner run;
  constexpr std::int64_t kLong = 150, kElements = kLong * 3;
  for (const std::int64_t window : {std::int64_t{0}, std::int64_t{70}}) {
    const Attributes at{.rows = kLong, .heads = 1, .kv_heads = 1, .head_dim = 3, .seq_len = kLong, .window = window, .stride = 3, .kv_stride = 3};
    Vector q = wave(kElements, 0), k = wave(kElements, 1), v = wave(kElements, 2), d = wave(kElements, 3), out(kElements), lse(kLong);
    Vector d_q(kElements), d_k(kElements), d_v(kElements);
    run(Function::attention, at, q, k, v, out, lse);
    run(Function::attention_backward, at, d, q, k, v, out, lse, d_q, d_k, d_v);
    const Vector direction = wave(kElements, 4);
    const auto along = [&](Vector& x) {
      const Vector at_rest = x;
      double ends[2];
      for (int side = 0; side < 2; ++side) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = at_rest[i] + (side == 0 ? -1e-6 : 1e-6) * direction[i];
        run(Function::attention, at, q, k, v, out, lse);
        ends[side] = dot(d, out);
      }
      x = at_rest;
      return (ends[1] - ends[0]) / 2e-6;
    };
    CHECK(dot(d_q, direction) == doctest::Approx(along(q)).epsilon(1e-6));
    CHECK(dot(d_k, direction) == doctest::Approx(along(k)).epsilon(1e-6));
    CHECK(dot(d_v, direction) == doctest::Approx(along(v)).epsilon(1e-6));
  }
}

TEST_CASE("rotary positions turn back") {
  Runner run;
  Vector x = wave(3 * 2 * 6, 0.4), turned(x.size()), back(x.size());
  Attributes at{.rows = 3, .heads = 1, .all_heads = 2, .head_dim = 6, .seq_len = 3, .factor = 1};
  run(Function::rope, at, x, turned);
  CHECK(turned[12] != doctest::Approx(x[12]));  // position 1
  CHECK(turned[18] == x[18]);                   // its second head is left alone
  at.factor = -1;
  run(Function::rope, at, turned, back);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(back[i] == doctest::Approx(x[i]).epsilon(1e-12));
}

template <class T>
std::vector<T> as(const Vector& values) {
  std::vector<T> result;
  for (const double value : values) result.push_back(static_cast<T>(value));
  return result;
}

TEST_CASE("products: transposes, accumulation and bias; bf16 is the fp32 product, rounded once") {
  Runner run;
  Vector a = wave(6, 0), b = wave(12, 1), c(8, 1.0), bias{1, 2, 3, 4}, none;
  const Attributes plain{.rows = 2, .columns = 4, .inner = 3, .accumulate = true};
  run(Function::gemm, plain, a, b, c, bias);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      double sum = 1 + bias[j];
      for (std::size_t k = 0; k < 3; ++k) sum += a[3 * i + k] * b[4 * k + j];
      CHECK(c[4 * i + j] == doctest::Approx(sum).epsilon(1e-14));
    }
  Vector at(6), bt(12), d(8);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t k = 0; k < 3; ++k) at[2 * k + i] = a[3 * i + k];
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t j = 0; j < 4; ++j) bt[3 * j + k] = b[4 * k + j];
  run(Function::gemm, {.rows = 2, .columns = 4, .inner = 3, .transpose_a = true, .transpose_b = true}, at, bt, d, none);
  for (std::size_t i = 0; i < 8; ++i) CHECK(d[i] == doctest::Approx(c[i] - 1 - bias[i % 4]).epsilon(1e-14));
  auto a16 = as<Eigen::bfloat16>(a), b16 = as<Eigen::bfloat16>(b), c16 = as<Eigen::bfloat16>(Vector(8));
  std::vector<float> a32(a16.begin(), a16.end()), b32(b16.begin(), b16.end()), c32(8);
  std::vector<Eigen::bfloat16> no_bias16;
  std::vector<float> no_bias32;
  const Attributes once{.rows = 2, .columns = 4, .inner = 3};
  run(Function::gemm, once, a16, b16, c16, no_bias16);
  run(Function::gemm, once, a32, b32, c32, no_bias32);
  for (std::size_t i = 0; i < 8; ++i) CHECK(static_cast<float>(c16[i]) == static_cast<float>(static_cast<Eigen::bfloat16>(c32[i])));
}

TEST_CASE("a loss that is not finite fails with its step") {
  Runner run;
  Vector logits{1, std::nan(""), 2}, lse(1), metrics(2);
  std::vector<double> labels(1);  // int64 of the same width: the zero
  CHECK_THROWS_WITH(run(Function::cross_entropy, {.rows = 1, .columns = 3}, logits, labels, lse, metrics), "the loss is not a finite number in step 0");
}

}  // namespace
}  // namespace stepcast::real::host
