// Fuzzes the readers of measurements: any text gives rows or an InputError, and every row is one that can be compared with a formula.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "calibration/read_measurements.hpp"
#include "hw_models/input_error.hpp"

using namespace stepcast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const calibration::MeasurementFile file = calibration::parse_measurements(text, "all_gather.txt");
    for (const calibration::Measurement& row : file.rows) {
      if (!(row.time > Seconds{})) std::abort();
      if (row.timed == calibration::Timed::collective && (row.collective.bytes < 1 || row.collective.group.nodes < 1)) std::abort();
    }
  } catch (const InputError&) {}
  return 0;
}
