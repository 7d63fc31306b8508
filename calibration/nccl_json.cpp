// See nccl_json.hpp. Keys: nccl-tests src/util.cu (devices, results with out_of_place and in_place).
#include "calibration/nccl_json.hpp"

#include <nlohmann/json.hpp>

#include "hw_models/text_file.hpp"

namespace stepcast::calibration {
namespace {

constexpr Limits<std::int64_t> kAnyCount{0, std::numeric_limits<std::int64_t>::max()};
constexpr Limits<double> kNumber{0, 1e15};

/// nccl-tests write the root as a text in one release and as a number in another.
std::optional<std::int64_t> root_of(Reader& row) {
  if (!row.has("root")) return std::nullopt;
  for (const char* none : {"-1", "", "none"}) {
    if (row.is_word("root", none)) return -1;
  }
  if (row.is_word("root", "0")) return 0;
  return row.integer("root");
}

bool given(const Json& object, const char* key) { return object.contains(key) && !object[key].is_null(); }

std::optional<NcclTiming> timing_of(Reader& row, const Json& json, const char* place, bool& wrong) {
  if (!given(json, place)) return std::nullopt;
  Reader timing = row.object(place);
  if (!given(json[place], "time")) return std::nullopt;
  if (given(json[place], "nwrong")) wrong = wrong || timing.number("nwrong") > 0;
  return NcclTiming{timing.number("time", kNumber), timing.number("alg_bw", kNumber), timing.number("bus_bw", kNumber)};
}

NcclRow row_of(Reader row, const Json& json, std::size_t index) {
  NcclRow result;
  result.line = index;
  result.bytes = row.integer("size", kAnyCount);
  result.count = row.integer("count", kAnyCount);
  result.type = row.text("type", 40);
  row.maybe("redop", result.redop);
  if (result.redop == "none") result.redop.clear();
  result.root = root_of(row);
  result.out_of_place = timing_of(row, json, "out_of_place", result.wrong);
  result.in_place = timing_of(row, json, "in_place", result.wrong);
  return result;
}

void read_devices(Reader& document, NcclRun& run) {
  if (!document.has("devices")) return;
  for (Reader& device : document.objects("devices")) {
    run.ranks.insert(device.integer("rank", {0, 1 << 20}));
    run.hosts.insert(device.text("hostname", 400));
    if (run.gpu.empty() && device.has("device_info")) run.gpu = printable(device.text("device_info"));
  }
}

/// The command stands first in "args": "build/all_reduce_perf".
void read_command(Reader& document, NcclRun& run) {
  if (!document.has("args")) return;
  constexpr std::string_view kSuffix = "_perf";
  for (const std::string& word : document.texts("args")) {
    const std::string name = word.substr(word.find_last_of('/') + 1);
    if (run.collective.empty() && name.size() > kSuffix.size() && name.ends_with(kSuffix))
      run.collective = printable(name.substr(0, name.size() - kSuffix.size()), 40);
  }
}

}  // namespace

NcclRun read_nccl_json(const Json& document, const std::string& file) {
  Reader reader(document, file);
  NcclRun run;
  read_devices(reader, run);
  read_command(reader, run);
  for (Reader& row : reader.objects("results")) {
    const std::size_t index = run.rows.size();
    run.rows.push_back(row_of(std::move(row), document["results"][index], index));
  }
  return run;
}

}  // namespace stepcast::calibration
