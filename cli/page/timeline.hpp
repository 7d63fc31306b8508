// A timeline for the report page: lanes of spans, joined where they are too short to be seen, so that a step of a million kernels makes a page of bounded size.
// docs/page.md, "Timeline"; test: tests/unit/page_timeline_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace stepcast::cli {

/// Nanoseconds from the timeline's begin; `kind` and `name` index its texts.
struct LaneSpan {
  std::int64_t begin = 0, end = 0;
  std::uint32_t kind = 0, name = 0;
};

/// Several spans in one: kind and name are those of the longest, `busy` is their time.
struct JoinedSpan {
  std::int64_t begin = 0, end = 0, busy = 0, count = 1;
  std::uint32_t kind = 0, name = 0;
};

/// Joins neighbours that are at most `fine` apart: any that are not longer than `fine` together, and fine ones of one kind. So any two that follow each other take more than `fine`
/// together. `spans` are ordered by begin.
std::vector<JoinedSpan> joined(const std::vector<LaneSpan>& spans, std::int64_t fine);

class Timeline {
 public:
  static constexpr std::int64_t kFineParts = 3000;  // of the timeline: what is shorter than one such part may be joined

  /// Of [begin, begin + length), seen as so many parts; spans are given in the same clock.
  Timeline(std::int64_t begin, std::int64_t length, std::int64_t parts = kFineParts) : begin_(begin), length_(length), parts_(parts) {}

  /// Opens a lane; spans go to the last one. `layer`s of a lane are drawn over each other and joined by themselves.
  void open_lane(const std::string& name) { lanes_.push_back({name, {}}); }
  /// What lies outside the timeline is cut off.
  void add(std::int64_t begin, std::int64_t end, const std::string& kind, const std::string& name, std::size_t layer = 0);
  [[nodiscard]] bool lane_is_empty() const { return lanes_.back().layers.empty(); }
  void drop_lane() { lanes_.pop_back(); }

  /// {length_ns, kinds, names, lanes: [{name, items: [[begin, length, kind, name, count, busy]]}]}, added to `section`.
  void write(nlohmann::ordered_json& section) const;

 private:
  struct Lane {
    std::string name;
    std::vector<std::vector<LaneSpan>> layers;
  };
  class Texts {
   public:
    std::uint32_t number_of(const std::string& text);
    [[nodiscard]] const std::vector<std::string>& all() const { return texts_; }

   private:
    std::vector<std::string> texts_;
    std::map<std::string, std::uint32_t> numbers_;
  };

  std::int64_t begin_, length_, parts_;
  Texts kinds_, names_;
  std::vector<Lane> lanes_;
};

}  // namespace stepcast::cli
