// See measurement_file.hpp. Every key is described in docs/measurement_file.md.
#include "calibration/measurement_file.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "hw_models/shape_json.hpp"

namespace stepcast::calibration {
namespace {

enum class What : std::uint8_t { gemm, attention, memory_bound, copy, launch, allocation, collective };
constexpr std::array kWhat{EnumName<What>{What::gemm, "gemm"},
                           EnumName<What>{What::attention, "attention"},
                           EnumName<What>{What::memory_bound, "memory_bound"},
                           EnumName<What>{What::copy, "copy"},
                           EnumName<What>{What::launch, "launch"},
                           EnumName<What>{What::allocation, "allocation"},
                           EnumName<What>{What::collective, "collective"}};
enum class Clock : std::uint8_t { device, host };
constexpr std::array kClocks{EnumName<Clock>{Clock::device, "device"}, EnumName<Clock>{Clock::host, "host"}};
enum class Call : std::uint8_t { launch, latency, malloc, free, cached };
constexpr std::array kLaunches{EnumName<Call>{Call::launch, "call"}, EnumName<Call>{Call::latency, "latency"}};
constexpr std::array kAllocations{EnumName<Call>{Call::malloc, "malloc"}, EnumName<Call>{Call::free, "free"}, EnumName<Call>{Call::cached, "cached"}};
constexpr Limits<std::int64_t> kCount{1, std::int64_t{1} << 40};
constexpr Limits<std::int64_t> kBytes{1, std::int64_t{1} << 53};
constexpr Limits<double> kTime{1e-12, 1e6};

void allocation(Reader& shape, Measurement& m) {
  switch (shape.enumeration("call", kAllocations)) {
    case Call::free: m.timed = Timed::device_free; break;
    case Call::cached: m.timed = Timed::cached_allocation; break;
    default: m.timed = Timed::device_malloc; break;
  }
  m.bytes = shape.bytes("size", kBytes);
}

hw::Operation operation_of(What what) {
  switch (what) {
    case What::gemm: return hw::Operation::gemm;
    case What::attention: return hw::Operation::attention;
    case What::copy: return hw::Operation::copy;
    case What::collective: return hw::Operation::collective;
    default: return hw::Operation::memory_bound;
  }
}

/// Why the row can't be used; empty if it can.
std::string read_shape(What what, hw::Dtype dtype, Reader& shape, Measurement& m) {
  if (what == What::allocation) return allocation(shape, m), "";
  if (what == What::launch) {
    m.timed = shape.enumeration("call", kLaunches) == Call::launch ? Timed::launch_call : Timed::launch_latency;
  } else if (what == What::collective) {
    m.timed = Timed::collective;
    m.collective = hw::read_collective(dtype, shape);
  } else {
    m.kernel = hw::read_kernel(operation_of(what), dtype, shape, &m.both_passes);
  }
  return hw::is_host_copy(m.kernel.kind) ? "no formula for copies between host and device" : "";
}

bool has_dtype(What what) { return what == What::gemm || what == What::attention || what == What::memory_bound || what == What::collective; }

/// Quartiles must agree with the median.
void read_times(Reader times, Measurement& m) {
  const double median = times.si("median", Dimension::time, kTime);
  const double low = times.si("first_quartile", Dimension::time, kTime), high = times.si("third_quartile", Dimension::time, kTime);
  static_cast<void>(times.integer("repeats", kCount));
  if (!(low <= median && median <= high)) times.fail("median", "is not between the quartiles");
  if (times.has("mean")) m.mean = Seconds(times.si("mean", Dimension::time, kTime));
  times.finish();
  m.time = Seconds(median);
}

/// A collective that ran at the same time. Returns why the row can't be used.
std::string read_beside(hw::Dtype dtype, Reader shape) {
  static_cast<void>(hw::read_collective(dtype, shape));
  shape.finish();
  return "no constant is fitted to kernels beside a collective";
}

void read_row(Reader row, const std::string& gpu, MeasurementFile& result, std::size_t index) {
  Measurement m;
  m.gpu = gpu;
  m.line = index;
  const What what = row.enumeration("what", kWhat);
  const hw::Dtype dtype = has_dtype(what) ? row.enumeration("dtype", hw::kDtypeNames) : hw::Dtype::bf16;
  Reader shape = row.object("shape");
  std::string reason = read_shape(what, dtype, shape, m);
  shape.finish();
  read_times(row.object("times"), m);
  if (m.timed == Timed::kernel) {
    row.maybe("name", m.name);
    row.maybe("ranks", m.ranks, {1, 4096});
    if (row.has("beside")) reason = read_beside(dtype, row.object("beside"));
  }
  if (row.has("clock")) m.host_timed = row.enumeration("clock", kClocks) == Clock::host;
  row.finish();
  if (reason.empty()) result.rows.push_back(std::move(m));
  else ++result.left_out[reason];
}

/// Facts are texts and numbers by name; few of them have a meaning here.
std::string read_machine(Reader machine, MeasurementFile& result) {
  for (const std::string& key : machine.keys()) machine.ignore(key);
  if (machine.has("threads")) result.processors = machine.integer("threads", {1, 4096});
  if (machine.has("memory_bytes")) result.memory_bytes = machine.integer("memory_bytes", kBytes);
  return machine.has("gpu") ? machine.text("gpu", 400) : "";
}

}  // namespace

MeasurementFile read_measurement_file(const Json& document, const std::string& file) {
  Reader reader(document, file);
  if (reader.text("schema") != kBenchSchema) reader.fail("schema", "unknown schema", std::string("this version reads ") + kBenchSchema);
  MeasurementFile result;
  result.file = file;
  result.format = "measurement file";
  const std::string gpu = read_machine(reader.object("machine"), result);
  std::size_t index = 0;
  for (Reader& row : reader.objects("rows")) read_row(std::move(row), gpu, result, index++);
  reader.finish();
  return result;
}

}  // namespace stepcast::calibration
