// One reader per kind of table; which rows have a formula is decided here, by the operation's name. See tables.hpp.
#include "calibration/tables.hpp"

#include <algorithm>
#include <array>

#include "calibration/table_row.hpp"
#include "hw_models/strict_json.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::calibration {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 53;

constexpr std::array kDtypes{EnumName<hw::Dtype>{hw::Dtype::fp64, "fp64"}, EnumName<hw::Dtype>{hw::Dtype::fp32, "fp32"},
                             EnumName<hw::Dtype>{hw::Dtype::tf32, "tf32"}, EnumName<hw::Dtype>{hw::Dtype::bf16, "bf16"},
                             EnumName<hw::Dtype>{hw::Dtype::fp16, "fp16"}, EnumName<hw::Dtype>{hw::Dtype::fp8, "fp8"}};

constexpr std::array kAttentionNames{EnumName<hw::AttentionKernel>{hw::AttentionKernel::flash1, "flash1"},
                                     EnumName<hw::AttentionKernel>{hw::AttentionKernel::flash2, "flash2"},
                                     EnumName<hw::AttentionKernel>{hw::AttentionKernel::flash3, "flash3"},
                                     EnumName<hw::AttentionKernel>{hw::AttentionKernel::triton, "triton"},
                                     EnumName<hw::AttentionKernel>{hw::AttentionKernel::triton, "flash_triton"},
                                     EnumName<hw::AttentionKernel>{hw::AttentionKernel::efficient, "efficient"},
                                     EnumName<hw::AttentionKernel>{hw::AttentionKernel::efficient, "xformers_cutlass"}};

using Memory = hw::MemoryClass;
constexpr std::array kClasses{EnumName<Memory>{Memory::elementwise, "elementwise"},
                              EnumName<Memory>{Memory::normalization, "normalization"},
                              EnumName<Memory>{Memory::softmax, "softmax"},
                              EnumName<Memory>{Memory::indexing, "indexing"},
                              EnumName<Memory>{Memory::copy, "copy"},
                              EnumName<Memory>{Memory::optimizer, "optimizer"}};

/// PyTorch's own kernels by operation; fused kernels of other libraries move the same bytes at other rates and belong to no class.
constexpr std::array kTorchOps{EnumName<Memory>{Memory::elementwise, "add"},  EnumName<Memory>{Memory::elementwise, "mul"},
                               EnumName<Memory>{Memory::elementwise, "div"},  EnumName<Memory>{Memory::elementwise, "addu"},
                               EnumName<Memory>{Memory::elementwise, "mulu"}, EnumName<Memory>{Memory::elementwise, "divu"},
                               EnumName<Memory>{Memory::elementwise, "relu"}, EnumName<Memory>{Memory::elementwise, "residual_add"},
                               EnumName<Memory>{Memory::normalization, "ln"}, EnumName<Memory>{Memory::softmax, "softmax"}};

constexpr std::array kCollectives{EnumName<hw::CollectiveKind>{hw::CollectiveKind::all_gather, "all_gather"},
                                  EnumName<hw::CollectiveKind>{hw::CollectiveKind::reduce_scatter, "reduce_scatter"},
                                  EnumName<hw::CollectiveKind>{hw::CollectiveKind::all_reduce, "all_reduce"}};

template <class Table>
auto find(const Table& table, const std::string& name) -> std::optional<decltype(table[0].value)> {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& entry) { return name == entry.name; });
  return found == table.end() ? std::nullopt : std::optional(found->value);
}

hw::Dtype dtype_of(const TableRow& row) {
  const std::string name = row.text("dtype");
  const auto dtype = find(kDtypes, name);
  if (!dtype) row.fail("dtype", "unknown type \"" + printable(name, 40) + "\"", "one of fp64, fp32, tf32, bf16, fp16, fp8");
  return *dtype;
}

/// A column "timing" says it; else the words of "method". A host clock around one synchronised call holds launch and synchronisation.
bool host_timed(const TableRow& row) {
  const std::string timing = row.text("timing"), method = row.text("method");
  if (timing == "host" || timing == "device") return timing == "host";
  if (!timing.empty()) row.fail("timing", "unknown value \"" + printable(timing, 40) + "\"", "host or device");
  const auto says = [&](const char* word) { return method.find(word) != std::string::npos; };
  return says("wall") || method.starts_with("M1") || method.starts_with("M2") || says("mean");
}

/// Nothing where the row's time can't be compared with a formula, with `reason` saying why.
using RowReader = bool (*)(const TableRow& row, Measurement& measurement, std::string& reason);

bool gemm_row(const TableRow& row, Measurement& measurement, std::string& reason) {
  const std::string op = row.text("op");
  if (op != "gemm" && op != "bmm") return reason = "operation \"" + printable(op, 40) + "\" is not one product", false;
  hw::KernelShape& shape = measurement.kernel;
  shape.kind = hw::KernelKind::gemm;
  shape.dtype = dtype_of(row);
  shape.batch = row.count("batch", 1, kMaxSize);
  shape.m = row.count("m", 1, kMaxSize);
  shape.n = row.count("n", 1, kMaxSize);
  shape.k = row.count("k", 1, kMaxSize);
  measurement.time = row.positive("time_us") * microsecond;
  return true;
}

/// The table gives a rate; FLOPs are counted as executed, so half with a causal mask (docs/models.md, "Counts and peaks").
bool attention_row(const TableRow& row, Measurement& measurement, std::string& reason) {
  const std::string name = row.text("impl"), pass = row.text("pass");
  const auto kernel = find(kAttentionNames, name);
  if (!kernel) return reason = "no formula for the attention kernel \"" + printable(name, 40) + "\"", false;
  if (pass != "fwd" && pass != "bwd" && pass != "fwd+bwd") row.fail("pass", "unknown value \"" + printable(pass, 40) + "\"", "fwd, bwd or fwd+bwd");
  hw::KernelShape& shape = measurement.kernel;
  shape.attention = *kernel;
  shape.dtype = hw::Dtype::fp16;
  shape.causal = row.count("causal", 0, 1) == 1;
  shape.batch = row.count("batch", 1, kMaxSize);
  shape.n = row.count("heads", 1, kMaxSize);
  shape.m = row.count("seqlen", 1, kMaxSize);
  shape.k = row.count("head_dim", 1, kMaxSize);
  shape.kind = hw::KernelKind::attention_forward;
  Flops work = executed_flops(shape) * (pass == "bwd" ? 0.0 : 1.0);
  measurement.both_passes = pass == "fwd+bwd";
  if (pass != "fwd") shape.kind = hw::KernelKind::attention_backward, work += executed_flops(shape);
  if (measurement.both_passes) shape.kind = hw::KernelKind::attention_forward;
  measurement.time = work / (row.positive("tflops") * TFLOPS);
  return true;
}

bool memory_row(const TableRow& row, Measurement& measurement, std::string& reason) {
  const std::string own = row.text("class"), op = row.text("op"), implementation = row.text("impl");
  std::optional<Memory> memory = find(kClasses, own);
  if (!own.empty() && !memory)
    row.fail("class", "unknown class \"" + printable(own, 40) + "\"", "elementwise, normalization, softmax, indexing, copy, optimizer");
  if (!memory && implementation == "torch" && row.text("pass") == "fwd") memory = find(kTorchOps, op);
  if (!memory) return reason = "no class for \"" + printable(op, 40) + "\" of \"" + printable(implementation, 40) + "\"", false;
  measurement.kernel.memory = *memory;
  measurement.kernel.dtype = dtype_of(row);
  measurement.kernel.read_bytes = row.count("ideal_bytes", 1, kMaxBytes);
  measurement.time = row.positive("time_us") * microsecond;
  return true;
}

/// Copies inside the device; the rate counts a byte read and written twice, as CUDA's bandwidthTest does. Host copies have no formula.
bool copy_row(const TableRow& row, Measurement& measurement, std::string& reason) {
  const std::string direction = row.text("direction");
  if (direction == "H2D" || direction == "D2H") return reason = "no formula for copies between host and device", false;
  if (direction != "D2D") row.fail("direction", "unknown value \"" + printable(direction, 40) + "\"", "H2D, D2H or D2D");
  const std::int64_t bytes = row.count("size_bytes", 1, kMaxBytes);
  measurement.kernel.memory = Memory::copy;
  measurement.kernel.read_bytes = measurement.kernel.write_bytes = bytes;
  measurement.time = Bytes(2.0 * static_cast<double>(bytes)) / (row.positive("GBps") * GBps);
  return true;
}

bool collective_row(const TableRow& row, Measurement& measurement, std::string& reason) {
  const std::string name = row.text("collective");
  const auto kind = find(kCollectives, name);
  if (!kind) return reason = "no formula for the collective \"" + printable(name, 40) + "\"", false;
  if (row.text("nodes").empty() || row.text("gpus_per_node").empty()) return reason = "the number of ranks isn't given", false;
  measurement.timed = Timed::collective;
  measurement.collective.kind = *kind;
  measurement.collective.bytes = row.count("size_bytes", 0, kMaxBytes);
  measurement.collective.group = {static_cast<std::int32_t>(row.count("gpus_per_node", 1, 4096)), static_cast<std::int32_t>(row.count("nodes", 1, 1 << 17))};
  if (measurement.collective.bytes == 0) return reason = "no bytes", false;
  if (measurement.collective.group.ranks() < 2) return reason = "one rank alone", false;
  measurement.time = row.positive("time_us") * microsecond;
  return true;
}

struct TableKind {
  const char* format;
  std::vector<const char*> columns;  // that it must have
  RowReader read;
};

std::vector<TableKind> kinds() {
  return {{"table of GEMM times", {"gpu", "dtype", "op", "batch", "m", "n", "k", "time_us"}, gemm_row},
          {"table of attention rates", {"gpu", "impl", "pass", "head_dim", "causal", "seqlen", "batch", "heads", "tflops"}, attention_row},
          {"table of memory-bound kernels", {"gpu", "op", "impl", "pass", "dtype", "time_us", "ideal_bytes"}, memory_row},
          {"table of copies", {"gpu", "direction", "size_bytes", "GBps"}, copy_row},
          {"table of collectives", {"nodes", "gpus_per_node", "collective", "size_bytes", "time_us"}, collective_row}};
}

MeasurementFile read(const CsvTable& table, const TableColumns& columns, const TableKind& kind) {
  MeasurementFile result{columns.file(), kind.format, {}, {}, 1, {}};
  for (const CsvRow& cells : table.rows) {
    const TableRow row(columns, cells);
    Measurement measurement;
    measurement.gpu = row.text("gpu");
    measurement.host_timed = host_timed(row);
    measurement.line = row.line();
    std::string reason;
    if (kind.read(row, measurement, reason)) result.rows.push_back(std::move(measurement));
    else ++result.left_out[reason];
  }
  return result;
}

}  // namespace

std::optional<MeasurementFile> table_measurements(const CsvTable& table, const std::string& file) {
  const TableColumns columns(table, file);
  for (const TableKind& kind : kinds()) {
    if (std::all_of(kind.columns.begin(), kind.columns.end(), [&](const char* name) { return columns.has(name); })) return read(table, columns, kind);
  }
  return std::nullopt;
}

}  // namespace stepcast::calibration
