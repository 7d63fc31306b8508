// Every function of the CUDA driver against that of the host driver, on the same numbers in every type: the kernels are the GPU's, on fakes (tests/fakes).
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "real_backend/cuda/kernels/numbers.hpp"
#include "real_backend/cuda/kernels/run.hpp"
#include "real_backend/host/kernels/run.hpp"
#include "real_backend/host/types.hpp"
#include "tests/fakes/machine.hpp"

namespace stepcast::real::cuda {
namespace {

using program::Activation;
using program::Attributes;
using program::Call;
using program::Function;
using Bytes = std::vector<std::byte>;

/// What a part holds: numbers of the case's type, of the type of its sums, fp64 numbers, or ids below `below`.
enum class Holds { values, sums, doubles, ids };
struct Slot {
  std::int64_t count = 0;  // 0: absent
  Holds holds = Holds::values;
  std::int64_t below = 0;
};

struct Case {
  std::string name;
  Function function;
  std::vector<Slot> slots;
  Attributes at;
};

Attributes attention_of(std::int64_t kv_heads, std::int64_t window) {
  return {.rows = 14, .heads = 4, .kv_heads = kv_heads, .head_dim = 6, .seq_len = 7, .window = window, .stride = 30, .kv_stride = 6 * kv_heads + 2};
}

std::vector<Case> cases() {
  constexpr std::int64_t kR = 9, kC = 10, kN = kR * kC;
  std::vector<Case> all = {
      {"zero", Function::zero, {{kN}}, {}},
      {"copy", Function::copy, {{kN}, {kN}}, {}},
      {"copy by a factor", Function::copy, {{kN}, {kN}}, {.factor = 0.25}},
      {"copy from fp64", Function::copy, {{kN, Holds::doubles}, {kN}}, {}},
      {"copy to sums", Function::copy, {{kN}, {kN, Holds::sums}}, {.factor = 0.5}},
      {"pack", Function::pack, {{kN}, {kN}, {kN}, {kC}, {kC}}, {}},
      {"add", Function::add, {{kN}, {kN}}, {}},
      {"add into sums", Function::add, {{kN, Holds::sums}, {kN}}, {}},
      {"sum", Function::sum, {{kN}, {kN}, {kN}}, {}},
      {"scale", Function::scale, {{kN}}, {.factor = 0.125}},
      {"load_input", Function::load_input, {{12, Holds::ids, 1}}, {.index = 1}},
      {"embedding", Function::embedding, {{kR, Holds::ids, 5}, {5 * kC}, {kN}}, {.rows = kR, .columns = kC}},
      {"embedding_backward", Function::embedding_backward, {{kR, Holds::ids, 5}, {kN}, {7 * kC}}, {.rows = kR, .columns = kC}},
      {"embedding_backward, added", Function::embedding_backward, {{kR, Holds::ids, 5}, {kN}, {7 * kC}}, {.rows = kR, .columns = kC, .accumulate = true}},
      {"add_positions", Function::add_positions, {{kN}, {3 * kC}, {kN}}, {.rows = kR, .columns = kC, .seq_len = 3}},
      {"positions_backward", Function::positions_backward, {{kN}, {4 * kC}}, {.rows = kR, .columns = kC, .seq_len = 3}},
      {"column_sum", Function::column_sum, {{200 * kC}, {kC}}, {.rows = 200, .columns = kC}},
      {"rope", Function::rope, {{4 * 30}, {4 * 30}}, {.rows = 4, .heads = 3, .all_heads = 5, .head_dim = 6, .seq_len = 2}},
      {"rope, back", Function::rope, {{4 * 30}, {4 * 30}}, {.rows = 4, .heads = 5, .all_heads = 5, .head_dim = 6, .seq_len = 4, .factor = -1}},
      {"gelu", Function::gelu, {{kN}, {kN}}, {}},
      {"gelu_backward", Function::gelu_backward, {{kN}, {kN}, {kN}}, {}},
      {"cross_entropy",
       Function::cross_entropy,
       {{kN}, {kR, Holds::ids, kC}, {kR, Holds::sums}, {4, Holds::doubles}},
       {.rows = kR, .columns = kC, .factor = 0.1}},
      {"cross_entropy_backward",
       Function::cross_entropy_backward,
       {{kN}, {kR, Holds::ids, kC}, {kR, Holds::sums}, {kN}},
       {.rows = kR, .columns = kC, .factor = 0.1}},
      {"sum_of_squares", Function::sum_of_squares, {{1, Holds::sums}, {kN}, {0}, {kC}}, {}},
      {"clip_coefficient", Function::clip_coefficient, {{1, Holds::sums}, {4, Holds::doubles}}, {}},
      {"scale_by", Function::scale_by, {{1, Holds::sums}, {kN}, {kC}}, {}},
      {"adamw", Function::adamw, {{kN}, {kN}, {kN}, {kN}, {kC}, {kC}, {kC}, {kC}}, {}},
  };
  for (const bool centred : {false, true}) {
    const std::int64_t statistics = centred ? 2 * kR : kR, bias = centred ? kC : 0, residual = centred ? 0 : kN;
    const Attributes at{.rows = kR, .columns = kC, .centred = centred};
    all.push_back({"norm", Function::norm, {{kN}, {kC}, {bias}, {kN}, {statistics, Holds::sums}}, at});
    all.push_back({"norm_backward", Function::norm_backward, {{kN}, {kN}, {statistics, Holds::sums}, {kC}, {residual}, {kN}, {kC}, {bias}}, at});
  }
  for (const Activation activation : {Activation::silu, Activation::gelu}) {
    const Attributes at{.rows = kR, .columns = 5, .activation = activation, .stride = kC};
    all.push_back({"gated", Function::gated, {{kN}, {kN}, {kR * 5}}, at});
    all.push_back({"gated_backward", Function::gated_backward, {{kR * 5}, {kN}, {kN}, {kN}, {kN}}, at});
  }
  for (int way = 0; way < 8; ++way) {
    const Attributes at{.rows = 3, .columns = 4, .inner = 5, .transpose_a = way % 2 == 1, .transpose_b = way / 2 % 2 == 1, .accumulate = way >= 4};
    all.push_back({"gemm " + std::to_string(way), Function::gemm, {{15}, {20}, {12}, {way == 2 ? 4 : 0}}, at});
  }
  for (const std::int64_t kv_heads : {4, 2, 1}) {
    for (const std::int64_t window : {0, 3}) {
      const Attributes at = attention_of(kv_heads, window);
      const std::int64_t q = 14 * 30, kv = 14 * at.kv_stride, out = 14 * 24, lse = 14 * 4;
      const std::string name = "attention, " + std::to_string(kv_heads) + " heads of keys, window " + std::to_string(window);
      all.push_back({name, Function::attention, {{q}, {kv}, {kv}, {out}, {lse, Holds::sums}}, at});
      all.push_back({name + ", back", Function::attention_backward, {{out}, {q}, {kv}, {kv}, {out}, {lse, Holds::sums}, {q}, {kv}, {kv}}, at});
    }
  }
  return all;
}

template <class T>
Bytes bytes_of(std::int64_t count, double phase) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<T>(0.6 + 0.5 * std::sin(1.3 * static_cast<double>(i) + phase)));  // positive: also second moments
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

Bytes ids(const Slot& slot) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < slot.count; ++i) values.push_back(i * i % slot.below);
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// A call on both drivers, and what became of all parts.
class Twice {
 public:
  Twice(const Case& c, hw::Dtype dtype) : call_{c.function, {}, c.at}, dtype_(dtype) {
    for (std::size_t i = 0; i < c.slots.size(); ++i) add(c.slots[i], static_cast<double>(i));
  }

  void run(Lane& lane, std::int32_t rank) {
    std::vector<std::byte*> on_host, on_device;
    for (std::size_t i = 0; i < host_.size(); ++i) {
      device_.push_back(host_[i].empty() ? nullptr : make_device_bytes(static_cast<std::int64_t>(host_[i].size())));
      if (device_[i]) check(cudaMemcpyAsync(device_[i].get(), host_[i].data(), host_[i].size(), cudaMemcpyHostToDevice, lane.stream()), "copy");
      on_host.push_back(host_[i].empty() ? nullptr : host_[i].data());
      on_device.push_back(device_[i].get());
    }
    const Training training{.source = Source::closed_form, .vocab = 11, .seq_len = 4, .micro_batch = 3, .ranks = 2};
    const Moment moment{1, 0};
    host::kernels::Scratch scratch;
    host::kernels::run(call_, on_host, {training, moment, rank}, scratch);
    kernels::run(call_, on_device, {training, moment, rank}, lane);
    for (std::size_t i = 0; i < host_.size(); ++i) {
      Bytes back(host_[i].size());
      if (device_[i]) check(cudaMemcpyAsync(back.data(), device_[i].get(), back.size(), cudaMemcpyDeviceToHost, lane.stream()), "copy");
      returned_.push_back(std::move(back));
    }
  }

  /// Greatest difference in any element of any part, relative to 1 or the element.
  [[nodiscard]] double difference() const {
    double most = 0;
    for (std::size_t i = 0; i < host_.size(); ++i) {
      const std::vector<double> a = numbers(i, host_[i]), b = numbers(i, returned_[i]);
      for (std::size_t k = 0; k < a.size(); ++k) most = std::max(most, std::isfinite(b[k]) ? std::abs(a[k] - b[k]) / std::max(1.0, std::abs(a[k])) : 1e9);
    }
    return most;
  }

 private:
  void add(const Slot& slot, double phase) {
    const hw::Dtype sums = dtype_ == hw::Dtype::fp64 ? hw::Dtype::fp64 : hw::Dtype::fp32;
    const hw::Dtype type = slot.holds == Holds::values ? dtype_ : slot.holds == Holds::sums ? sums : hw::Dtype::fp64;
    call_.parts.push_back({static_cast<std::uint32_t>(call_.parts.size()), type, 0, slot.count});
    whole_.push_back(slot.holds == Holds::ids);
    if (slot.holds == Holds::ids) host_.push_back(ids(slot));
    else host::with_type(type, [&]<class T>(stepcast::real::Type<T>) { host_.push_back(bytes_of<T>(slot.count, phase)); });
  }
  [[nodiscard]] std::vector<double> numbers(std::size_t i, const Bytes& bytes) const {
    std::vector<double> result;
    const auto read = [&]<class T>(stepcast::real::Type<T>) {
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
        T value{};
        std::memcpy(&value, bytes.data() + at, sizeof(T));
        result.push_back(static_cast<double>(value));
      }
    };
    if (whole_[i]) read(stepcast::real::Type<std::int64_t>{});
    else host::with_type(call_.parts[i].dtype, read);
    return result;
  }

  Call call_;
  hw::Dtype dtype_;
  std::vector<bool> whole_;
  std::vector<Bytes> host_, returned_;
  std::vector<DeviceBytes> device_;
};

/// A lane of its own, as a device has them.
struct Fixture {
  Failure failure;
  Counter progress{0};
  Clock clock;
  Training training;
  Timers timers;
  Anchor anchor;
  Lane lane{Common{failure, progress, clock, training}, timers, anchor};
};

TEST_CASE("kernels of the CUDA driver compute what the host driver's do, in every type") {
  const fakes::Machine machine(1);
  {
    Fixture fixture;
    for (const Case& c : cases()) {
      for (const hw::Dtype dtype : {hw::Dtype::fp64, hw::Dtype::fp32, hw::Dtype::bf16}) {
        const std::string name = c.name + " in " + hw::name(dtype);
        CAPTURE(name);
        Twice twice(c, dtype);
        twice.run(fixture.lane, 1);
        CHECK(twice.difference() < (dtype == hw::Dtype::fp64 ? 1e-12 : dtype == hw::Dtype::fp32 ? 2e-5 : 0x1p-6));
      }
    }
  }
  CHECK(machine.faults().empty());
  CHECK(machine.leaks().empty());
}

TEST_CASE("what the CUDA driver does not compute in is refused by name") {
  const fakes::Machine machine(1);
  Fixture fixture;
  const Call call{Function::sum, {{0, hw::Dtype::fp16, 0, 1}, {1, hw::Dtype::fp16, 0, 1}, {2, hw::Dtype::fp16, 0, 1}}, {}};
  const std::vector<std::byte*> parts(3);
  CHECK_THROWS_WITH(kernels::run(call, parts, {fixture.training, {}, 0}, fixture.lane), "the CUDA driver computes in fp64, fp32 and bf16, not in fp16");
  const Call copy{Function::copy, {{0, hw::Dtype::fp32, 0, 1}, {1, hw::Dtype::fp32, 0, 2}}, {}};
  CHECK_THROWS_WITH(kernels::run(copy, parts, {fixture.training, {}, 0}, fixture.lane), "a copy between parts of different sizes");
}

TEST_CASE("bf16 rounds to the nearest, ties to even, as the host's does; NaN stays one") {
  for (const float value : {0.F, 1.F, -1.5F, 1.00390625F, 1.01171875F, 3.4e38F, 1e-40F, std::nanf("")}) {
    const float here = static_cast<float>(Bf16(value)), there = static_cast<float>(Eigen::bfloat16(value));
    CAPTURE(value);
    CHECK((here == there || (std::isnan(here) && std::isnan(there))));
  }
}

}  // namespace
}  // namespace stepcast::real::cuda
