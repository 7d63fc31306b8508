// The judgement as a page. See validate.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/report/validate.hpp"

namespace stepcast::cli {
namespace {

constexpr double kSize = 720, kMargin = 60;

std::string html_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') result += "&lt;";
    else if (c == '>') result += "&gt;";
    else if (c == '&') result += "&amp;";
    else if (c == '"') result += "&quot;";
    else result += c;
  }
  return result;
}

/// Both axes in tokens/s/GPU, powers of ten around all points.
struct Axis {
  double low = 1, high = 10;
  [[nodiscard]] double at(double value) const { return kMargin + (kSize - 2 * kMargin) * std::log10(value / low) / std::log10(high / low); }
};

Axis axis_of(const std::vector<const JudgedRow*>& rows) {
  double low = 1e300, high = 1e-300;
  for (const JudgedRow* row : rows) {
    low = std::min({low, *row->measured.tokens_per_s_per_gpu, row->forecast.tokens_per_s_per_gpu});
    high = std::max({high, *row->measured.tokens_per_s_per_gpu, row->forecast.tokens_per_s_per_gpu});
  }
  if (rows.empty()) return {};
  Axis axis{std::pow(10, std::floor(std::log10(low))), std::pow(10, std::ceil(std::log10(high)))};
  if (axis.low == axis.high) axis.high *= 10;
  return axis;
}

std::string grid(const Axis& axis) {
  std::string svg;
  for (double decade = axis.low; decade <= axis.high * 1.01; decade *= 10) {
    const double p = axis.at(decade), end = kSize - kMargin;
    svg += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}M{3:.1f} {4:.1f}H{5:.1f}\"/>", p, kMargin, end, kMargin, kSize - p, end);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>", p, end + 18, decade);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>", kMargin - 6, kSize - p + 4, decade);
  }
  return svg;
}

std::string point(const JudgedRow& row, const Axis& axis, int colour) {
  const double measured = *row.measured.tokens_per_s_per_gpu, forecast = row.forecast.tokens_per_s_per_gpu;
  const std::string title = fmt::format("{} ({}, {} x {}, {}): measured {:.6g}, forecast {:.6g}, {:+.1f} %", row.id, row.model, row.n_gpus, row.gpu, row.group,
                                        measured, forecast, 100 * *row.error);
  return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"hsl({} 70% 50%)\"{}><title>{}</title></circle>\n", axis.at(measured),
                     kSize - axis.at(forecast), colour, row.forecast.outcome == "ok" ? "" : " class=\"nofit\"", html_escaped(title));
}

int colour_of(const std::string& group, const Judgement& j) {
  const auto place = std::distance(j.by_source.begin(), j.by_source.find(group));
  return static_cast<int>(place * 137 % 360);  // the golden angle keeps neighbours apart
}

std::string scatter(const Judgement& j) {
  std::vector<const JudgedRow*> rows;
  for (const JudgedRow& row : j.rows) {
    if (row.error) rows.push_back(&row);
  }
  const Axis axis = axis_of(rows);
  std::string svg = fmt::format("<svg viewBox=\"0 0 {0:g} {0:g}\" role=\"img\" aria-label=\"measured against forecast tokens per second and GPU\">\n", kSize);
  svg += grid(axis);
  svg += fmt::format("<path class=\"equal\" d=\"M{0:g} {1:g}L{1:g} {0:g}\"/>\n", kMargin, kSize - kMargin);
  for (const JudgedRow* row : rows) svg += point(*row, axis, colour_of(row->group, j));
  svg += fmt::format("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"middle\">measured, tokens/s/GPU</text>", kSize / 2, kSize - 16);
  svg += fmt::format("<text transform=\"translate(14 {:g}) rotate(-90)\" text-anchor=\"middle\">forecast, tokens/s/GPU</text></svg>\n", kSize / 2);
  return svg;
}

std::string legend(const Judgement& j) {
  std::string html = "<p>";
  for (const auto& [name, group] : j.by_source) {
    if (group.speed.count > 0)
      html += fmt::format("<span class=\"key\"><i style=\"background:hsl({} 70% 50%)\"></i>{} ({})</span> ", colour_of(name, j), html_escaped(name),
                          group.speed.count);
  }
  return html + "</p>\n";
}

constexpr const char* kStyle =
    ":root{color-scheme:light dark}body{font:14px system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}svg{max-width:760px;display:block}"
    "svg text{fill:currentColor;font-size:12px}.grid{stroke:currentColor;opacity:.2}.equal{stroke:currentColor;opacity:.6}circle{opacity:.75}"
    "circle.nofit{stroke:currentColor;stroke-width:2}.key{margin-right:1em;white-space:nowrap}.key "
    "i{display:inline-block;width:.8em;height:.8em;margin-right:.3em;"
    "border-radius:50%}pre{overflow-x:auto;font-size:12px}";

}  // namespace

std::string to_html(const Judgement& judgement, const std::string& title) {
  return fmt::format(
             "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
             "content=\"width=device-width\"><title>{0}</title>\n<style>{1}</style>\n"
             "<h1>Forecast against measurement: {0}</h1>\n<p>A point on the line is exact, above it the forecast is too fast. A ring marks a run that ran but "
             "does not fit by the "
             "forecast. Hover a point for its row.</p>\n",
             html_escaped(title), kStyle) +
         scatter(judgement) + legend(judgement) + "<pre>" + html_escaped(to_text(judgement)) + "</pre></html>\n";
}

}  // namespace stepcast::cli
