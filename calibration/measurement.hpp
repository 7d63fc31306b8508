// What was measured, whatever file it came from: one timed operation by shape, and the file's own account of what it held. docs/calibration.md.
// Readers: nccl_log.hpp, nccl_json.hpp, tables.hpp, measurement_file.hpp; the door to all of them is read_measurements.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hw_models/kernel.hpp"
#include "hw_models/units.hpp"

namespace stepcast::calibration {

/// What a row timed; each has a formula in hw_models.
enum class Timed : std::uint8_t {
  kernel,          // `kernel`; with `both_passes`, attention's forward and backward together
  collective,      // `collective`
  launch_call,     // host time of the driver's launch call
  launch_latency,  // from that call to the start on an idle stream
  device_malloc,   // `bytes` from the driver
  device_free,
  cached_allocation  // host time of `bytes` from the allocator's cache
};

struct Measurement {
  Timed timed = Timed::kernel;
  hw::KernelShape kernel;
  std::string name;        // of a kernel as launched, where shapes alone don't tell kernels apart
  std::int32_t ranks = 1;  // that ran the kernel at the same time on one machine
  bool both_passes = false;
  hw::CollectiveShape collective;  // group.ranks_per_node is 0 where only the number of ranks is known; it then stands in group.nodes
  std::int64_t bytes = 0;
  Seconds time;                   // the median
  std::optional<Seconds> mean{};  // of the repetitions, where the file says it
  bool looped = true;             // repeated in a measuring loop, which may find its operands in a cache; false: within a training step
  bool host_timed = false;        // by a host clock with one launch and one synchronisation around each call, so that their cost is inside
  std::string gpu;                // as the file calls it; empty if it doesn't say
  std::size_t line = 0;           // of the file (of a JSON list: index)
};

struct MeasurementFile {
  std::string file;
  std::string format;  // e.g. "nccl-tests log"
  std::vector<Measurement> rows;
  std::map<std::string, std::size_t> left_out;  // rows that hold a measurement that can't be used, by reason
  std::size_t lines_without_data = 0;
  std::vector<std::string> notes;                            // what was inferred, what failed
  std::optional<std::int64_t> processors{}, memory_bytes{};  // of the machine, where the file says so
};

}  // namespace stepcast::calibration
