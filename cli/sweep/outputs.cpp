// See outputs.hpp.
#include "cli/sweep/outputs.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "cli/page/sweep_page.hpp"
#include "cli/sweep/json.hpp"
#include "cli/sweep/points.hpp"

namespace stepcast::cli {
namespace {

constexpr const char* kOpening = "{\"schema\": \"stepcast.sweep_result/1\", \"points\": [\n";

std::string json_line(const SweptPoints& points, std::size_t point) {
  return point_json(points.grid, points.plan, points.store, point) + (point + 1 < points.grid.size() ? ",\n" : "\n]}\n");
}

/// The files of --out, made of the points one by one.
class SweepFiles {
 public:
  SweepFiles(const SweptPoints& points, const std::string& title, OutputFolder& folder)
      : points_(points), folder_(folder), json_(folder.staged_path("report.json")), csv_(folder.staged_path("sweep.csv")), page_(title, points.grid) {
    json_.write(kOpening);
    csv_.write(sweep_csv_header(points.grid));
  }
  void add(std::size_t point, const PointRow& row, const std::string& csv) {
    json_.write(json_line(points_, point));
    csv_.write(csv);
    page_.add(point, row);
  }
  void publish(const SweepTable& table) {
    json_.close();
    csv_.close();
    folder_.stage("sweep.txt", table.text());
    stage_page(page_.page(), folder_);
    folder_.publish();
  }

 private:
  const SweptPoints& points_;
  OutputFolder& folder_;
  PieceFile json_, csv_;
  SweepPage page_;
};

}  // namespace

SweepTable write_points(const SweptPoints& points, const SweepOutputs& outputs) {
  SweepTable table(points.grid, outputs.shown);
  std::optional<SweepFiles> files;
  std::optional<PieceFile> csv;
  if (outputs.folder) files.emplace(points, outputs.title, *outputs.folder);
  if (outputs.csv) csv.emplace(outputs.csv->staged_path()).write(sweep_csv_header(points.grid));
  for (std::size_t i = 0; i < points.grid.size(); ++i) {
    const PointRow row = row_of(nlohmann::ordered_json::parse(kept_json(points.plan, points.store, i)), "points.jsonl");
    table.add(i, row);
    const std::string line = files || csv ? sweep_csv_line(points.grid, i, row) : "";
    if (files) files->add(i, row, line);
    if (csv) csv->write(line);
  }
  if (files) files->publish(table);
  if (csv) csv->close();
  if (outputs.csv) outputs.csv->publish();
  return table;
}

void write_json(const SweptPoints& points, const std::function<void(const std::string&)>& write) {
  write(kOpening);
  for (std::size_t i = 0; i < points.grid.size(); ++i) write(json_line(points, i));
}

}  // namespace stepcast::cli
