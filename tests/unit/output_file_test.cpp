// A file appears whole or not at all: commit, giving up, refusals of the file system.
#include "trace/output_file.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "trace/chrome_writer.hpp"

using namespace stepcast::trace;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "stepcast-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(path), fs::directory_iterator()); }
  fs::path path;
};

std::string unzip(const fs::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  REQUIRE(file != nullptr);
  std::string text;
  char part[4096];
  for (int n = 0; (n = gzread(file, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
  gzclose(file);
  return text;
}

}  // namespace

TEST_CASE("a committed file holds all that was written, alone, with the permissions of any new file") {
  const Folder folder;
  const auto path = folder.path / "t.json.gz";
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i) + ",";
  GzipFile file(path);
  file.stream() << text;
  file.commit();
  CHECK(unzip(path) == text);
  CHECK(folder.files() == 1);
  std::ofstream(folder.path / "plain") << "x";
  CHECK(fs::status(path).permissions() == fs::status(folder.path / "plain").permissions());
}

TEST_CASE("a file that was given up leaves nothing, and one that stood there stays") {
  const Folder folder;
  const auto path = folder.path / "t.json.gz";
  std::ofstream(path) << "before";
  {
    GzipFile file(path);
    file.stream() << "half";
    CHECK(folder.files() == 2);
  }
  CHECK(folder.files() == 1);
  CHECK(fs::file_size(path) == 6);
}

TEST_CASE("a folder that does not exist and a name that is a folder are errors that name the file") {
  const Folder folder;
  CHECK_THROWS_AS(GzipFile(folder.path / "no" / "t.gz"), std::system_error);
  GzipFile file(folder.path);
  CHECK_THROWS_WITH_AS(file.commit(), doctest::Contains(folder.path.c_str()), std::system_error);
}

TEST_CASE("a full device is an error, not a short file") {
  const Folder folder;
  // A limit on the size of files stands for the full device.
  struct Limit {
    Limit() { signal(SIGXFSZ, SIG_IGN), getrlimit(RLIMIT_FSIZE, &before), set(1000); }
    ~Limit() { setrlimit(RLIMIT_FSIZE, &before); }
    void set(rlim_t bytes) {
      rlimit limit = before;
      limit.rlim_cur = bytes;
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    rlimit before{};
  };
  const auto write_much = [&] {
    const Limit limit;
    GzipFile file(folder.path / "t.gz");
    for (unsigned i = 0; i < 300'000; ++i) file.stream() << (i * 2654435761U) << '\n';
    file.commit();
  };
  CHECK_THROWS_AS(write_much(), std::system_error);
  CHECK(folder.files() == 0);
}

TEST_CASE("a trace that refers to what it does not hold leaves no file") {
  const Folder folder;
  Trace trace;
  trace.ranks.emplace_back();
  trace.ranks[0].slices.emplace_back();  // a kernel without entry
  trace.ranks[0].slices.back().lane = 0;
  CHECK_THROWS_AS(write_chrome_gz(trace, folder.path / "t.gz"), std::out_of_range);
  CHECK(folder.files() == 0);
}
