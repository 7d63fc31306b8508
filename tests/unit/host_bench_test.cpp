// How bench repeats and what it measures.
#include <doctest/doctest.h>

#include <algorithm>

#include "real_backend/bench/kernels.hpp"
#include "tests/support/tiny_models.hpp"

namespace stepcast::real::bench {
namespace {

TEST_CASE("quartiles by linear interpolation") {
  const Quartiles q = quartiles({4, 1, 3, 2, 5});
  CHECK(q.first == 2);
  CHECK(q.median == 3);
  CHECK(q.third == 4);
  CHECK(q.repeats == 5);
  CHECK(quartiles({1, 2}).first == doctest::Approx(1.25));
}

TEST_CASE("repetition stops when the noise is small, and goes on while it is not") {
  int calls = 0;
  const Effort effort{.warm_up = 2, .least = 10, .most = 200, .seconds = 10, .noise = 0.01};
  CHECK(repeat(effort, [&] { return ++calls, 1e-3; }).repeats == 10);
  CHECK(calls == 12);
  const Quartiles noisy = repeat(effort, [&] { return ++calls % 2 == 0 ? 1e-3 : 3e-3; });
  CHECK(noisy.repeats == 200);
}

TEST_CASE("a program's kernels are its distinct shapes, and every case of it and of the sweep can be run") {
  const Effort little{.warm_up = 0, .least = 1, .most = 1, .seconds = 0};
  const std::vector<KernelCase> own = kernels_of(program::build_program(test::tiny_gpt(), 1));
  CHECK(own.size() > 15);
  for (std::size_t i = 0; i < own.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(own[i].shape != own[j].shape);
  for (const KernelCase& kernel : own) CHECK(measure(kernel, little).time.median >= 0);
  for (const KernelCase& kernel : sweep(hw::Dtype::fp32)) {
    if (kernel.call.parts[0].count <= 1 << 16) CHECK(measure(kernel, little).time.median > 0);
  }
}

TEST_CASE("launches and collectives take some time") {
  const Effort little{.warm_up = 1, .least = 3, .most = 3, .seconds = 1};
  const LaunchTime launch = measure_launch(little);
  CHECK(launch.latency.median > 0);
  CHECK(measure_collective(hw::CollectiveKind::reduce_scatter, hw::Dtype::fp32, 4096, 2, little).median > 0);
}

}  // namespace
}  // namespace stepcast::real::bench
