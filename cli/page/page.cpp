// See page.hpp.
#include "cli/page/page.hpp"

#include <cstdio>

#include "cli/output_folder.hpp"
#include "hw_models/embedded.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {

OrderedJson to_json(const Page& page) {
  OrderedJson tiles = OrderedJson::array();
  for (const Tile& tile : page.tiles) tiles.push_back({{"label", tile.label}, {"value", tile.value}, {"note", tile.note}});
  return {{"schema", kPageSchema},     {"command", page.command}, {"version", STEPCAST_VERSION}, {"title", page.title},
          {"headline", page.headline}, {"tiles", tiles},          {"notices", page.notices},     {"sections", page.sections}};
}

OrderedJson section(const std::string& kind, const std::string& title, const std::string& text) { return {{"kind", kind}, {"title", title}, {"text", text}}; }

std::string script_json(const OrderedJson& json) {
  std::string safe;
  for (const char c : json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)) {
    // The three occur in JSON only within texts, where an escape means the same.
    if (c == '<') safe += "\\u003c";
    else if (c == '>') safe += "\\u003e";
    else if (c == '&') safe += "\\u0026";
    else safe += c;
  }
  return safe;
}

bool has_page() { return !web_files().empty(); }

std::string filled(std::string_view name, const OrderedJson& data) {
  static constexpr std::string_view kPlace = "%DATA%";
  for (const EmbeddedFile& file : web_files()) {
    if (file.name != name) continue;
    const std::size_t place = file.text.find(kPlace);
    return std::string(file.text.substr(0, place)) + script_json(data) + std::string(file.text.substr(place + kPlace.size()));
  }
  return {};
}

std::string html_of(const Page& page) { return filled(kReportTemplate, to_json(page)); }

void stage_page(const Page& page, OutputFolder& folder) {
  const std::string html = html_of(page);
  if (html.empty()) std::fputs("stepcast: this build has no report page (Node.js or its packages were not there): text and JSON only\n", stderr);
  else folder.stage(kPageFile, html);
}

}  // namespace stepcast::cli
