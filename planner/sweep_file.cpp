// See sweep_file.hpp.
#include "planner/sweep_file.hpp"

#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"

namespace stepcast::planner {
namespace {

constexpr const char* kSchema = "stepcast.sweep/1";

/// A value as --set takes it. A text is written as JSON, so that "2.8" stays a text.
std::vector<std::string> listed(Reader& reader, const Json& axis) {
  const Json& values = axis.at("values");
  reader.ignore("values");
  if (!values.is_array()) reader.fail("values", "expected an array of values");
  std::vector<std::string> texts;
  for (const Json& value : values) texts.push_back(value.dump());
  return texts;
}

Axis read_axis(Reader reader, const Json& json) {
  Axis axis{reader.text("pointer"), {}};
  if (axis.pointer.empty() || axis.pointer[0] != '/' || axis.pointer.find('=') != std::string::npos)
    reader.fail("pointer", "is not a JSON pointer", "for example /batch/micro_batch");
  if (reader.has("values") == reader.has("range")) reader.fail("values", "is needed, or range in its place");
  axis.values = reader.has("values") ? listed(reader, json) : parse_values(reader.text("range"), axis.pointer);
  reader.finish();
  return axis;
}

}  // namespace

SweepFile read_sweep(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  Reader root(json, file);
  if (root.has("schema") && root.text("schema") != kSchema) root.fail("schema", std::string("this program reads \"") + kSchema + "\"");
  SweepFile sweep{root.text("scenario"), {}, {}};
  if (root.has("set")) sweep.sets = root.texts("set");
  std::vector<Reader> axes = root.objects("vary");
  for (std::size_t i = 0; i < axes.size(); ++i) sweep.axes.push_back(read_axis(std::move(axes[i]), json.at("vary").at(i)));
  root.finish();
  return sweep;
}

}  // namespace stepcast::planner
