// Moves the unread rest to the front before it reads on, so that the window grows only where one value is larger than it.
#include "trace/profile/window.hpp"

#include <algorithm>
#include <cstring>

namespace stepcast::trace::profile {

bool Window::more() {
  if (ended_) return false;
  const std::size_t rest = end_ - at_;
  if (at_ > 0 && rest > 0) std::memmove(bytes_.data(), bytes_.data() + at_, rest);
  at_ = 0;
  end_ = rest;
  if (rest + 1 == bytes_.size()) {
    if (rest >= kMost) return bytes_[end_] = '\0', false;
    bytes_.resize(rest * 2 + 1);
  }
  const std::size_t got = source_.read(bytes_.data() + end_, bytes_.size() - 1 - end_);
  end_ += got;
  bytes_[end_] = '\0';
  ended_ = got == 0;
  return !ended_;
}

char Window::next() {
  while (true) {
    Cursor in = cursor();
    skip_space(in);
    advance_to(in);
    if (in.at != in.end || !more()) return *cursor().at;
  }
}

}  // namespace stepcast::trace::profile
