// See measurement_file.hpp. Every key is described in docs/measurement_file.md.
#include "calibration/measurement_file.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "hw_models/text_file.hpp"

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
constexpr std::array kDtypes{EnumName<hw::Dtype>{hw::Dtype::fp64, "fp64"}, EnumName<hw::Dtype>{hw::Dtype::fp32, "fp32"},
                             EnumName<hw::Dtype>{hw::Dtype::tf32, "tf32"}, EnumName<hw::Dtype>{hw::Dtype::bf16, "bf16"},
                             EnumName<hw::Dtype>{hw::Dtype::fp16, "fp16"}, EnumName<hw::Dtype>{hw::Dtype::fp8, "fp8"}};
using Kernel = hw::AttentionKernel;
constexpr std::array kKernels{EnumName<Kernel>{Kernel::flash1, "flash1"}, EnumName<Kernel>{Kernel::flash2, "flash2"},
                              EnumName<Kernel>{Kernel::flash3, "flash3"}, EnumName<Kernel>{Kernel::triton, "triton"},
                              EnumName<Kernel>{Kernel::efficient, "efficient"}};
using Memory = hw::MemoryClass;
constexpr std::array kClasses{EnumName<Memory>{Memory::elementwise, "elementwise"}, EnumName<Memory>{Memory::normalization, "normalization"},
                              EnumName<Memory>{Memory::softmax, "softmax"}, EnumName<Memory>{Memory::indexing, "indexing"},
                              EnumName<Memory>{Memory::optimizer, "optimizer"}};
enum class Pass : std::uint8_t { forward, backward, both };
constexpr std::array kPasses{EnumName<Pass>{Pass::forward, "forward"}, EnumName<Pass>{Pass::backward, "backward"}, EnumName<Pass>{Pass::both, "both"}};
enum class Clock : std::uint8_t { device, host };
constexpr std::array kClocks{EnumName<Clock>{Clock::device, "device"}, EnumName<Clock>{Clock::host, "host"}};
enum class Call : std::uint8_t { launch, latency, malloc, free };
constexpr std::array kLaunches{EnumName<Call>{Call::launch, "call"}, EnumName<Call>{Call::latency, "latency"}};
constexpr std::array kAllocations{EnumName<Call>{Call::malloc, "malloc"}, EnumName<Call>{Call::free, "free"}};
enum class Direction : std::uint8_t { inside, to_device, to_host };
constexpr std::array kDirections{EnumName<Direction>{Direction::inside, "device_to_device"}, EnumName<Direction>{Direction::to_device, "host_to_device"},
                                 EnumName<Direction>{Direction::to_host, "device_to_host"}};
using Kind = hw::CollectiveKind;
constexpr std::array kCollectives{EnumName<Kind>{Kind::all_gather, "all_gather"}, EnumName<Kind>{Kind::reduce_scatter, "reduce_scatter"},
                                  EnumName<Kind>{Kind::all_reduce, "all_reduce"}};

constexpr Limits<std::int64_t> kCount{1, std::int64_t{1} << 40};
constexpr Limits<std::int64_t> kBytes{1, std::int64_t{1} << 53};
constexpr Limits<double> kTime{1e-12, 1e6};

void gemm(Reader& shape, Measurement& m) {
  m.kernel.kind = hw::KernelKind::gemm;
  m.kernel.batch = shape.has("batch") ? shape.integer("batch", kCount) : 1;
  m.kernel.m = shape.integer("m", kCount);
  m.kernel.n = shape.integer("n", kCount);
  m.kernel.k = shape.integer("k", kCount);
}

void attention(Reader& shape, Measurement& m) {
  m.kernel.attention = shape.enumeration("kernel", kKernels);
  const Pass pass = shape.enumeration("pass", kPasses);
  m.kernel.kind = pass == Pass::backward ? hw::KernelKind::attention_backward : hw::KernelKind::attention_forward;
  m.both_passes = pass == Pass::both;
  m.kernel.causal = shape.boolean("causal");
  m.kernel.batch = shape.integer("batch", kCount);
  m.kernel.m = shape.integer("seq_len", kCount);
  m.kernel.n = shape.integer("heads", kCount);
  m.kernel.kv_heads = shape.has("kv_heads") ? shape.integer("kv_heads", {1, m.kernel.n}) : 0;
  m.kernel.k = shape.integer("head_dim", kCount);
}

void memory_bound(Reader& shape, Measurement& m) {
  m.kernel.memory = shape.enumeration("class", kClasses);
  m.kernel.read_bytes = shape.bytes("read", kBytes);
  m.kernel.write_bytes = shape.bytes("write", {0, kBytes.max});
}

/// False for copies over the host's bus, which have no formula.
bool copy(Reader& shape, Measurement& m) {
  m.kernel.memory = Memory::copy;
  m.kernel.read_bytes = m.kernel.write_bytes = shape.bytes("size", kBytes);
  return shape.enumeration("direction", kDirections) == Direction::inside;
}

void allocation(Reader& shape, Measurement& m) {
  m.timed = shape.enumeration("call", kAllocations) == Call::malloc ? Timed::device_malloc : Timed::device_free;
  m.bytes = shape.bytes("size", kBytes);
}

void collective(Reader& shape, Measurement& m) {
  m.timed = Timed::collective;
  m.collective.kind = shape.enumeration("collective", kCollectives);
  m.collective.bytes = shape.bytes("size", kBytes);
  m.collective.group.nodes = static_cast<std::int32_t>(shape.integer("nodes", {1, 1 << 17}));
  m.collective.group.ranks_per_node = static_cast<std::int32_t>(shape.integer("ranks_per_node", {1, 4096}));
  if (m.collective.group.ranks() < 2) shape.fail("ranks_per_node", "a collective needs two ranks");
}

/// Why the row can't be used; empty if it can.
std::string read_shape(What what, Reader& shape, Measurement& m) {
  switch (what) {
    case What::gemm: gemm(shape, m); break;
    case What::attention: attention(shape, m); break;
    case What::memory_bound: memory_bound(shape, m); break;
    case What::copy: return copy(shape, m) ? "" : "no formula for copies between host and device";
    case What::launch: m.timed = shape.enumeration("call", kLaunches) == Call::launch ? Timed::launch_call : Timed::launch_latency; break;
    case What::allocation: allocation(shape, m); break;
    case What::collective: collective(shape, m); break;
  }
  return "";
}

bool has_dtype(What what) { return what == What::gemm || what == What::attention || what == What::memory_bound || what == What::collective; }

/// The median counts; quartiles and repeats must agree with it.
Seconds read_times(Reader times) {
  const double median = times.si("median", Dimension::time, kTime);
  const double low = times.si("first_quartile", Dimension::time, kTime), high = times.si("third_quartile", Dimension::time, kTime);
  static_cast<void>(times.integer("repeats", kCount));
  if (!(low <= median && median <= high)) times.fail("median", "is not between the quartiles");
  times.finish();
  return Seconds(median);
}

void read_row(Reader row, const std::string& gpu, MeasurementFile& result, std::size_t index) {
  Measurement m;
  m.gpu = gpu;
  m.line = index;
  const What what = row.enumeration("what", kWhat);
  if (has_dtype(what)) m.kernel.dtype = m.collective.dtype = row.enumeration("dtype", kDtypes);
  Reader shape = row.object("shape");
  const std::string reason = read_shape(what, shape, m);
  shape.finish();
  m.time = read_times(row.object("times"));
  if (row.has("clock")) m.host_timed = row.enumeration("clock", kClocks) == Clock::host;
  row.finish();
  if (reason.empty()) result.rows.push_back(std::move(m));
  else ++result.left_out[reason];
}

/// Facts are texts and numbers by name; only "gpu" has a meaning here.
std::string read_machine(Reader machine) {
  for (const std::string& key : machine.keys()) machine.ignore(key);
  return machine.has("gpu") ? machine.text("gpu", 400) : "";
}

}  // namespace

MeasurementFile read_measurement_file(const Json& document, const std::string& file) {
  Reader reader(document, file);
  if (reader.text("schema") != kBenchSchema) reader.fail("schema", "unknown schema", std::string("this version reads ") + kBenchSchema);
  MeasurementFile result{file, "measurement file", {}, {}, 0, {}};
  const std::string gpu = read_machine(reader.object("machine"));
  std::size_t index = 0;
  for (Reader& row : reader.objects("rows")) read_row(std::move(row), gpu, result, index++);
  reader.finish();
  return result;
}

const char* measured_name(hw::AttentionKernel kernel) { return spelled(kKernels, kernel); }
const char* measured_name(hw::MemoryClass memory) { return spelled(kClasses, memory); }

}  // namespace stepcast::calibration
