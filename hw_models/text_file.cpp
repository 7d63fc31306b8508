// File reading and the small text tools of error messages. Test: tests/unit/strict_json_test.cpp.
#include "hw_models/text_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <system_error>
#include <vector>

#include "hw_models/input_error.hpp"

namespace stepcast {

std::string read_text_file(const std::string& path, std::size_t max_bytes) {
  const std::string shown = printable(path, 400);
  if (path.find('\0') != std::string::npos) throw InputError(shown, "", "a file name cannot contain a zero byte");
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw InputError(shown, "", "is a directory", "give a file");
  const auto close = [](std::FILE* open) { std::fclose(open); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  if (!file) throw InputError(shown, "", std::string("cannot be opened: ") + std::strerror(errno));
  std::string text;
  std::array<char, 65536> block{};
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block.data(), count);
    if (text.size() > max_bytes) throw InputError(shown, "", "is larger than the limit of " + std::to_string(max_bytes) + " bytes");
  }
  if (std::ferror(file.get()) != 0) throw InputError(shown, "", "cannot be read");
  return text;
}

std::string printable(std::string_view text, std::size_t max_length) {
  std::string shown(text.substr(0, max_length));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  }
  return text.size() > max_length ? shown + "..." : shown;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, 64);
  b = b.substr(0, 64);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace stepcast
