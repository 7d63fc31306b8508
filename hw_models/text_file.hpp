// Reads a whole input file with a size limit; a missing file, a directory or an unreadable one is an InputError. Test: tests/unit/strict_json_test.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace stepcast {

/// Content of the file (or pipe) at `path`. Throws InputError naming it.
std::string read_text_file(const std::string& path, std::size_t max_bytes);
/// Text fit for a one-line message: control and non-ASCII bytes become '?', and more than `max_length` characters are cut.
std::string printable(std::string_view text, std::size_t max_length = 120);
/// The candidate nearest to `word` by edit distance, or "" if none is near (a third of its length, at least 2 edits).
template <class Range>
std::string nearest(std::string_view word, const Range& candidates);
/// Number of single-character insertions, removals and replacements between two words; each is cut at 64 characters.
std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Range>
std::string nearest(std::string_view word, const Range& candidates) {
  std::size_t best = std::max<std::size_t>(2, word.size() / 3) + 1;
  std::string found;
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

}  // namespace stepcast
