// A file that lives as long as a test.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace stepcast::test {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) : path_((std::filesystem::temp_directory_path() / "stepcast-file-XXXXXX").string()) {
    const int file = mkstemp(path_.data());
    REQUIRE(file >= 0);
    close(file);
    append(text);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void append(const std::string& text) const { std::ofstream(path_, std::ios::binary | std::ios::app) << text; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace stepcast::test
