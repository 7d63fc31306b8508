// What `tune` may change: settings that leave the mathematics of training alone. Points that share the work of the device (kernels, transfers) form a class, points that share what is
// computed a group of classes; members of a class differ in the order of calls; beside them stand settings of the allocator. docs/tune.md; test: tests/unit/tune_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace stepcast::planner {

/// One choice of a dimension, as --set texts.
struct Option {
  std::string words;
  std::vector<std::string> sets;
};

struct Dimension {
  std::string name;
  std::vector<Option> options;
};

/// The combinations of dimensions, counted with the last one fastest.
class Product {
 public:
  explicit Product(std::vector<Dimension> dimensions = {});
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const std::vector<Dimension>& dimensions() const { return dimensions_; }
  /// The choices of combination `i`, by dimension.
  [[nodiscard]] std::vector<const Option*> choices(std::size_t i) const;

 private:
  std::vector<Dimension> dimensions_;
  std::size_t size_ = 1;
};

/// FSDP1 or FSDP2.
struct Family {
  std::string framework;
  Product work;             // what the device computes; the same for every policy
  Product policy;           // what is sharded and transferred beside it
  Product order;            // in which order calls are made
  std::size_t typical = 0;  // of `order`: PyTorch's defaults
};

struct Space {
  std::vector<Family> families;
  Product allocators;
  [[nodiscard]] std::size_t points() const;
};

struct SpaceSettings {
  std::int64_t global_batch = 0;     // sequences per optimizer step, of all ranks; 0: as the scenario has
  bool flash3 = false;               // the GPU has this kernel
  std::vector<std::string> fixed{};  // JSON pointers of settings that stay as they are
};

/// The first order of calls is the one that holds least memory: no prefetch, and the limiter on. Throws InputError where the batch can't be divided, or a
/// fixed setting isn't one of a scenario.
Space space_of(const scenarios::Scenario& base, const SpaceSettings& settings);

}  // namespace stepcast::planner
