// See request.hpp.
#include "cli/serve/request.hpp"

#include <algorithm>

#include "cli/serve/controls.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {
namespace {

constexpr const char* kFile = "request";
constexpr std::size_t kMaxSettings = 256;

/// Only what a control offers: a page that many may open should not be able to ask for a step of an hour, or for the files of the machine (a profile's name may be one).
Setting read_setting(Reader& reader, const nlohmann::json& object) {
  Setting setting{reader.text("pointer", 200), {}};
  const Control* control = find_control(setting.pointer);
  if (!control) reader.fail("pointer", "\"" + printable(setting.pointer, 80) + "\" is no control of the page", "the answer to GET /api/forecast lists them");
  if (!reader.has("value")) reader.fail("value", "is missing");
  reader.ignore("value");
  reader.finish();
  setting.value = object["value"];
  const auto& options = control->options;
  if (std::find(options.begin(), options.end(), setting.value) == options.end())
    reader.fail("value", "is none of the values of " + setting.pointer, "they are " + options.dump());
  return setting;
}

/// A text that would be read as JSON has to be one.
bool reads_as_json(const std::string& text) {
  try {
    (void)parse_json(text, kFile);
    return true;
  } catch (const InputError&) { return false; }
}

}  // namespace

ForecastRequest read_request(std::string_view body) {
  const nlohmann::json json = parse_json(body, kFile);
  ForecastRequest request;
  Reader reader(json, kFile);
  reader.maybe("remedies", request.remedies);
  if (reader.has("settings")) {
    std::vector<Reader> all = reader.objects("settings");
    if (all.size() > kMaxSettings) reader.fail("settings", "has more than " + std::to_string(kMaxSettings) + " entries");
    for (std::size_t i = 0; i < all.size(); ++i) request.settings.push_back(read_setting(all[i], json["settings"][i]));
  }
  reader.finish();
  return request;
}

std::string set_text(const std::string& pointer, const nlohmann::json& value) {
  const bool plain = value.is_string() && !reads_as_json(value.get_ref<const std::string&>());
  return pointer + "=" + (plain ? value.get<std::string>() : value.dump());
}

}  // namespace stepcast::cli
