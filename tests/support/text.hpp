// Questions about texts that a test reads.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace stepcast::test {

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline bool any_has(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return has(line, part); });
}

}  // namespace stepcast::test
