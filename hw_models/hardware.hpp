// Hardware as data: every constant carries its value, source and kind, so that a report can list what was assumed.
// Read from data/*.json (compiled in) by profile_json; unknown hardware is an error, never a default.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/kernel.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

enum class Origin : std::uint8_t { measured, datasheet, fitted, assumed };
const char* name(Origin origin);

/// A constant in SI units with its provenance.
struct Constant {
  double value = 0;
  std::string source;
  Origin origin = Origin::assumed;
  std::optional<double> spread{};  // standard deviation of log(value), i.e. about the relative one, where it is known
};

/// What one kernel took on `ranks` ranks of the machine at the same time; `name`: as launched, for kernels of one shape that compute different things.
struct MeasuredKernel {
  std::string name;
  KernelShape shape;
  std::int32_t ranks = 1;
  Constant time;
};
struct MeasuredCollective {
  CollectiveShape shape;
  Constant time;
};

/// A named set of constants, e.g. one GPU type. The names that each kind of profile must have are listed in profile_json.cpp; a missing or unknown one is an error.
struct Profile {
  std::string name;
  std::string default_gpu;  // of a node: the GPU that such nodes carry unless the scenario says otherwise
  std::map<std::string, Constant, std::less<>> constants;
  std::vector<MeasuredKernel> kernels;          // of a GPU: stand before the formulas (measured_times.hpp) ...
  std::vector<MeasuredCollective> collectives;  // ... and so do these, of a node
  /// Value of a constant that must be there. Throws std::out_of_range (a bug: the reader has checked).
  [[nodiscard]] double at(std::string_view key) const;
};

/// How the nodes are built and joined. Rates are per node and direction.
struct Cluster {
  std::string gpu;  // name of a GPU profile
  std::int32_t gpus_per_node = 8, nodes = 1;
  Profile node;  // intra-node and network rates, latencies, host
};

}  // namespace stepcast::hw
