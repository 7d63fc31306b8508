// A folder of its own for a test of the built command, what the command answered, and small questions about texts.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/paths.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/text.hpp"

namespace stepcast::test {

struct Outcome {
  int code = -1;
  std::string out, err;
};

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A folder of its own for each test; runs the command in it.
class Place {
 public:
  Place() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stepcast-cli-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
  }
  ~Place() { std::filesystem::remove_all(folder_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return name;
  }
  Outcome run(const std::string& arguments) const { return shell("'" + binary() + "' " + arguments); }
  /// Any command line of sh.
  Outcome shell(const std::string& line) const {
    // Leaks are looked for in the tests of the libraries: at the end of a command that takes half of its time.
    const std::string leaks = kSanitized ? "export ASAN_OPTIONS=detect_leaks=0; " : "";
    const std::string command = leaks + "cd '" + folder_.string() + "' && " + line + " >.out 2>.err </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status, read(folder_ / ".out"), read(folder_ / ".err")};
  }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

inline bool one_line(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

}  // namespace stepcast::test
