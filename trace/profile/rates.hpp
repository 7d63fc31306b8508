// What the device achieved: time by class of kernel, FLOP/s of matrix products where shapes were recorded, bandwidth of collectives where sizes were.
// Formulas: docs/diagnose.md, "Rates". Test: tests/unit/profile_rates_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/kernel.hpp"
#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

/// "gemm", "attention", "convolution", "normalisation", "softmax", "elementwise", "reduction", "optimizer", "indexing", "sort", "other".
std::string_view kernel_class(std::string_view kernel);

struct ClassTotal {
  std::int64_t count = 0;
  Time total{};
};

/// Matrix products, or fused attention, of one operator, shape and type. FLOP: operands.hpp.
struct Products {
  std::string op, shapes;
  std::optional<hw::Dtype> dtype;
  std::int64_t calls = 0;
  double flop = 0;  // of all calls
  Time time{};      // of all kernels that the calls launched
};
/// Collectives of one type, group and message.
struct CollectiveRate {
  std::string type, group, dtype;
  std::int64_t ranks = 0;  // in the group; 0 if it was not recorded
  double bytes = 0;        // message: what an all-gather gives, a reduce-scatter takes, an all-reduce has; 0 if it was not recorded
  std::int64_t count = 0;
  Time total{}, exposed{}, shortest{};
  /// Bytes per second of the shortest one (the longer ones wait for other ranks) times nccl-tests' factor of the type; nothing where it is unknown.
  [[nodiscard]] std::optional<double> bus_bandwidth() const;
};

struct Rates {
  std::map<std::string, ClassTotal, std::less<>> classes;
  std::vector<Products> products, attention;  // longest time first
  std::vector<CollectiveRate> collectives;
};
Rates rates_of(const Profile& profile, std::uint32_t device);

}  // namespace stepcast::trace::profile
