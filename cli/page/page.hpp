// The report page: one HTML file that shows a report's data as charts. The program fills in data alone; web/ draws it. docs/page.md; test: tests/unit/page_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::cli {

class OutputFolder;

inline constexpr const char* kPageSchema = "stepcast.page/1";
inline constexpr const char* kPageFile = "report.html";

/// The pages that web/ makes when stepcast is built, without their data.
inline constexpr const char* kReportTemplate = "report.html";
inline constexpr const char* kServeTemplate = "serve.html";

/// A figure at the top of the page, in words.
struct Tile {
  std::string label, value, note;
};

/// What a page shows. A section is an object with `kind` (which drawing of web/src), `title`, `text` (what the drawing says, in a sentence or two) and its data.
struct Page {
  std::string command, title, headline;
  std::vector<Tile> tiles;
  std::vector<std::string> notices;
  std::vector<nlohmann::ordered_json> sections;
};
nlohmann::ordered_json to_json(const Page& page);

nlohmann::ordered_json section(const std::string& kind, const std::string& title, const std::string& text);

/// JSON that may stand in an HTML script element whatever texts are in it: no "<", ">" or "&", and no bytes that are no UTF-8.
std::string script_json(const nlohmann::ordered_json& json);

/// A template with its data, or nothing in a build without the pages. Test: tests/unit/serve_test.cpp.
std::string filled(std::string_view name, const nlohmann::ordered_json& data);

/// Whether this build has the page.
bool has_page();
/// The page, or nothing in a build without it.
std::string html_of(const Page& page);
/// Stages report.html; a build without the page says so on standard error instead. Throws std::system_error.
void stage_page(const Page& page, OutputFolder& folder);

}  // namespace stepcast::cli
