// Time of a measured operation on a machine, by the formulas of hw_models and nothing else. Test: tests/unit/calibrate_test.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibration/machine.hpp"
#include "calibration/measurement.hpp"
#include "hw_models/attention.hpp"
#include "hw_models/collective.hpp"
#include "hw_models/gemm.hpp"
#include "hw_models/memory_bound.hpp"

namespace stepcast::calibration {

/// Rates are looked up once per kind of row: a fit asks some millions of times.
class Predictor {
 public:
  explicit Predictor(const Machine& machine);
  /// The row must be usable on such a machine (`obstacle` is empty).
  [[nodiscard]] Seconds time(const Measurement& row);

 private:
  Seconds kernel(const hw::KernelShape& shape);

  const Machine& machine_;
  std::map<hw::Dtype, hw::GemmRates> gemm_;
  std::map<hw::AttentionKernel, hw::AttentionRates> attention_;
  std::map<hw::MemoryClass, hw::MemoryRates> memory_;
  std::optional<hw::LinkRates> links_;
};

/// Why the row can't be compared with a formula on this machine; empty if it can. Formulas have ranges (docs/models.md).
std::string obstacle(const Measurement& row, const Machine& machine);
/// The row with its ranks spread over nodes as the profile's nodes are built, where the file did not say. Its group is left as it is where that can't be.
Measurement placed(Measurement row, const Machine& machine);

}  // namespace stepcast::calibration
