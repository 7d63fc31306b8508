// See read_measurements.hpp.
#include "calibration/read_measurements.hpp"

#include <nlohmann/json.hpp>

#include "calibration/measurement_file.hpp"
#include "calibration/nccl_json.hpp"
#include "calibration/nccl_log.hpp"
#include "calibration/tables.hpp"
#include "calibration/trace_rows.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::calibration {
namespace {

constexpr const char* kKnownFormats =
    "nccl-tests logs or their JSON, measurement files of stepcast bench, traces, and CSV tables of GEMM, attention, memory-bound kernels, copies or "
    "collectives are";

MeasurementFile from_json(std::string_view text, const std::string& file) {
  const Json document = parse_json(text, file);
  if (document.is_object() && document.contains("results")) {
    MeasurementFile result = nccl_measurements(read_nccl_json(document, file), file);
    result.format = "nccl-tests JSON";
    return result;
  }
  if (document.is_object() && document.contains("schema") && document["schema"].is_string()) {
    const auto& schema = document["schema"].get_ref<const std::string&>();
    if (schema.starts_with("stepcast.bench/")) return read_measurement_file(document, file);
    throw InputError(printable(file, 400), "/schema", "\"" + printable(schema, 60) + "\" holds no measurements",
                     schema.starts_with("stepcast.hardware/") ? "a profile is given with --gpu or --node" : "");
  }
  throw InputError(printable(file, 400), "", "is not a kind of measurements that is read", kKnownFormats);
}

/// A header of several names; anything else can't be one of the tables.
bool looks_like_table(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  return first.find(',') != std::string_view::npos && first.find_first_of(" \t\"{[#") == std::string_view::npos;
}

}  // namespace

MeasurementFile parse_measurements(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw InputError(printable(file, 400), "", "is empty");
  if (text[first] == '{') return from_json(text, file);
  if (looks_like_table(text)) {
    if (auto table = table_measurements(parse_csv(text, printable(file, 400)), printable(file, 400))) return std::move(*table);
  } else if (looks_like_nccl_log(text)) {
    return nccl_measurements(parse_nccl_log(text), file);
  }
  throw InputError(printable(file, 400), "", "is not a kind of measurements that is read", kKnownFormats);
}

MeasurementFile read_measurements(const std::string& path) {
  if (looks_like_trace(path)) return read_traces(path);
  return parse_measurements(read_text_file(path, kMaxTableBytes), path);
}

}  // namespace stepcast::calibration
