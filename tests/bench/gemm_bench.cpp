// Products of the host driver against the same Eigen expression called by itself. Both take turns; `of_eigen` is the ratio of their rates by processor time, best against best, since
// others on the machine only make either slower. Figures: docs/real_backend.md, "Speed".
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <ctime>
#include <limits>
#include <vector>

#include "bench/eigen_product.hpp"
#include "real_backend/host/kernels/run.hpp"

namespace {

using namespace stepcast;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class F>
void keep_best(double& best, F f) {
  const double begin = processor_seconds();
  f();
  best = std::min(best, processor_seconds() - begin);
}

/// Arguments: m, n, k, and whether b is transposed.
void product(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const bool transposed = state.range(3) != 0;
  std::vector<float> a(static_cast<std::size_t>(m * k), 0.5F), b(static_cast<std::size_t>(k * n), 0.25F), c(static_cast<std::size_t>(m * n));
  const auto part = [](std::uint32_t buffer, std::int64_t count) { return program::Part{buffer, hw::Dtype::fp32, 0, count}; };
  const program::Call call{
      program::Function::gemm, {part(0, m * k), part(1, k * n), part(2, m * n), {}}, {.rows = m, .columns = n, .inner = k, .transpose_b = transposed}};
  const std::array<std::byte*, 4> parts{reinterpret_cast<std::byte*>(a.data()), reinterpret_cast<std::byte*>(b.data()), reinterpret_cast<std::byte*>(c.data()),
                                        nullptr};
  const real::Training training;
  real::host::kernels::Scratch scratch;
  double ours = std::numeric_limits<double>::infinity(), eigen = ours;
  for (auto _ : state) {
    keep_best(ours, [&] { real::host::kernels::run(call, parts, {training, {}, 0}, scratch); });
    keep_best(eigen, [&] { bench::eigen_product(a.data(), b.data(), c.data(), m, n, k, transposed); });
  }
  const double flop = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  state.counters["gflop/s"] = 1e-9 * flop / ours;
  state.counters["of_eigen"] = eigen / ours;
}
BENCHMARK(product)
    ->ArgNames({"m", "n", "k", "transposed"})
    ->ArgsProduct({{256}, {256}, {256}, {0, 1}})
    ->ArgsProduct({{512}, {512}, {512}, {0, 1}})
    ->ArgsProduct({{1024}, {1024}, {1024}, {0, 1}})
    ->ArgsProduct({{1024}, {256, 640}, {256}, {0, 1}})
    ->MinTime(1);

}  // namespace
