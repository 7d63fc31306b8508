// The part of a byte source that is being scanned, followed by '\0'. Private to trace/profile.
#pragma once

#include <cstddef>
#include <vector>

#include "trace/profile/byte_source.hpp"
#include "trace/profile/scan.hpp"

namespace stepcast::trace::profile {

class Window {
 public:
  explicit Window(ByteSource& source) : source_(source), bytes_(kStart + 1) { bytes_[0] = '\0'; }

  /// What is in hand from the place of reading on.
  [[nodiscard]] Cursor cursor() const { return {bytes_.data() + at_, bytes_.data() + end_}; }
  /// Reading goes on at `cursor`, which came from cursor() since the last more().
  void advance_to(const Cursor& cursor) { at_ = static_cast<std::size_t>(cursor.at - bytes_.data()); }
  /// Keeps what is from the place of reading on and adds to it. False at the end of the source, or if kMost bytes are in hand already.
  bool more();
  /// Nothing comes after what is in hand.
  [[nodiscard]] bool at_end() const { return ended_; }
  /// The next byte that is no blank, '\0' at the end.
  char next();
  void drop_all() { at_ = end_; }

 private:
  static constexpr std::size_t kStart = std::size_t{1} << 20, kMost = std::size_t{1} << 24;

  ByteSource& source_;
  std::vector<char> bytes_;
  std::size_t at_ = 0, end_ = 0;
  bool ended_ = false;
};

}  // namespace stepcast::trace::profile
