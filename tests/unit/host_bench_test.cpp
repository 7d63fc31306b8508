// How bench repeats and what it measures.
#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <stdexcept>

#include "real_backend/bench/kernels.hpp"
#include "real_backend/bench/ranks.hpp"
#include "tests/support/tiny_models.hpp"

namespace stepcast::real::bench {
namespace {

TEST_CASE("quartiles by linear interpolation") {
  const Quartiles q = quartiles({4, 1, 3, 2, 5});
  CHECK(q.first == 2);
  CHECK(q.median == 3);
  CHECK(q.third == 4);
  CHECK(q.repeats == 5);
  CHECK(q.mean == 3);
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

TEST_CASE("a program's kernels are its distinct names and shapes, and every case of it and of the sweep can be run") {
  const Effort little{.warm_up = 0, .least = 1, .most = 1, .seconds = 0};
  const std::vector<KernelCase> own = kernels_of(program::build_program(test::tiny_gpt(), 1));
  CHECK(own.size() > 15);
  for (std::size_t i = 0; i < own.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK((own[i].shape != own[j].shape || own[i].name != own[j].name));
  for (const KernelCase& kernel : own) CHECK(measure(host_target(), kernel, 2, little).median > 0);
  for (const KernelCase& kernel : sweep(hw::Dtype::fp32)) {
    if (kernel.call.parts[0].count <= 1 << 16) CHECK(measure(host_target(), kernel, 1, little).median > 0);
  }
}

TEST_CASE("kernels on single numbers and those that read nothing are among a program's") {
  bool tiny = false, fills = false;
  for (const KernelCase& kernel : kernels_of(program::build_program(test::tiny_llama(), 1))) {
    tiny = tiny || kernel.shape.memory == hw::MemoryClass::tiny;
    fills = fills || (kernel.shape.kind == hw::KernelKind::memory_bound && kernel.shape.read_bytes == 0);
  }
  CHECK(tiny);
  CHECK(fills);
}

TEST_CASE("copies of small operands take turns, those of large ones don't; all lie in the device's memory, filled") {
  const auto call = [](std::int64_t count) { return program::Call{program::Function::zero, {{0, hw::Dtype::fp32, 0, count}}, {}}; };
  const program::Call small = call(1 << 18), large = call(1 << 22);  // 1 and 16 MiB
  const std::int64_t outgrows = std::int64_t{8} << 20;
  Ranks ranks(host_target(), 1, 0, {}, Operands::bytes(small, outgrows) + Operands::bytes(large, outgrows));
  ranks.on_all([&](std::size_t, Pool& pool) {
    const Operands few(small, outgrows, pool), one(large, outgrows, pool);
    CHECK(few.parts(0) != few.parts(1));
    CHECK(few.parts(0) == few.parts(8));
    CHECK(one.parts(0) == one.parts(1));
    std::byte last{};
    pool.device().read(one.parts(0)[0] + (16 << 20) - 1, std::span(&last, 1));
    CHECK(last == std::byte{0x3c});
  });
}

TEST_CASE("ranks that fail are told by their cause") {
  Ranks ranks(host_target(), 2, 0, {}, 0);
  CHECK_THROWS_WITH(ranks.on_all([](std::size_t rank, Pool&) {
    if (rank == 1) throw std::runtime_error("broken");
  }),
                    "rank 1: broken");
}

TEST_CASE("launches, allocations and collectives take some time") {
  const Effort little{.warm_up = 1, .least = 3, .most = 3, .seconds = 1};
  CHECK(measure_launch_call(host_target(), little).median > 0);
  CHECK(measure_launch_latency(host_target(), little).median > 0);
  CHECK(measure_allocation(1 << 20, little).median > 0);
  CHECK(measure_copy(host_target(), true, false, 1 << 16, little).median > 0);
  CHECK(measure_beside(host_target(), product(hw::Dtype::fp32), {hw::CollectiveKind::all_gather, hw::Dtype::fp32, 4096, {2, 1}}, little).median > 0);
  CHECK(measure_collective(host_target(), {hw::CollectiveKind::reduce_scatter, hw::Dtype::fp32, 4096, {2, 1}}, little).median > 0);
}

}  // namespace
}  // namespace stepcast::real::bench
