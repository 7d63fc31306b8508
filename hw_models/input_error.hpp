// Bad input: one line with file, JSON pointer (or line), what is wrong and a hint. Caught in main, exit code 2.
#pragma once

#include <stdexcept>
#include <string>

namespace stepcast {

class InputError : public std::runtime_error {
 public:
  /// `place` is a JSON pointer such as "/cluster/gpu", "line 12", or empty; `hint` may be empty.
  InputError(const std::string& file, const std::string& place, const std::string& what, const std::string& hint = "")
      : std::runtime_error(file + (place.empty() ? "" : ": " + place) + ": " + what + (hint.empty() ? "" : "; " + hint)) {}
};

}  // namespace stepcast
