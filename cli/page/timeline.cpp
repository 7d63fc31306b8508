// See timeline.hpp.
#include "cli/page/timeline.hpp"

#include <algorithm>

#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

/// A group of spans that grows.
struct LaneGroup {
  explicit LaneGroup(const LaneSpan& first) : sum{first.begin, first.end, first.end - first.begin, 1, first.kind, first.name}, longest(sum.busy) {}

  [[nodiscard]] bool takes(const LaneSpan& next, std::int64_t fine) const {
    if (next.begin - sum.end > fine) return false;
    if (std::max(next.end, sum.end) - sum.begin <= fine) return true;
    return next.kind == sum.kind && longest <= fine && next.end - next.begin <= fine;
  }

  void take(const LaneSpan& next) {
    const std::int64_t length = next.end - next.begin;
    sum.busy += std::max<std::int64_t>(0, next.end - std::max(next.begin, sum.end));
    sum.end = std::max(sum.end, next.end);
    ++sum.count;
    if (length <= longest) return;
    longest = length;
    sum.kind = next.kind;
    sum.name = next.name;
  }

  JoinedSpan sum;
  std::int64_t longest;
};

}  // namespace

std::vector<JoinedSpan> joined(const std::vector<LaneSpan>& spans, std::int64_t fine) {
  std::vector<JoinedSpan> out;
  if (spans.empty()) return out;
  LaneGroup group(spans.front());
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (group.takes(spans[i], fine)) {
      group.take(spans[i]);
      continue;
    }
    out.push_back(group.sum);
    group = LaneGroup(spans[i]);
  }
  out.push_back(group.sum);
  return out;
}

std::uint32_t Timeline::Texts::number_of(const std::string& text) {
  const auto [place, is_new] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(text);
  return place->second;
}

void Timeline::add(std::int64_t begin, std::int64_t end, const std::string& kind, const std::string& name, std::size_t layer) {
  begin = std::max(begin - begin_, std::int64_t{0});
  end = std::min(end - begin_, length_);
  if (begin >= end) return;
  auto& layers = lanes_.back().layers;
  if (layers.size() <= layer) layers.resize(layer + 1);
  layers[layer].push_back({begin, end, kinds_.number_of(kind), names_.number_of(name)});
}

void Timeline::write(OrderedJson& section) const {
  section["length_ns"] = length_;
  section["kinds"] = kinds_.all();
  section["names"] = names_.all();
  section["lanes"] = OrderedJson::array();
  for (const Lane& lane : lanes_) {
    OrderedJson items = OrderedJson::array();
    for (std::vector<LaneSpan> spans : lane.layers) {
      std::stable_sort(spans.begin(), spans.end(), [](const LaneSpan& a, const LaneSpan& b) { return a.begin < b.begin; });
      for (const JoinedSpan& span : joined(spans, length_ / parts_))
        items.push_back({span.begin, span.end - span.begin, span.kind, span.name, span.count, span.busy});
    }
    section["lanes"].push_back({{"name", lane.name}, {"items", std::move(items)}});
  }
}

}  // namespace stepcast::cli
