// Data files compiled in by cmake/embed.cmake must be equal to the files on disk, byte by byte, whatever they hold.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "hw_models/embedded.hpp"
#include "support/paths.hpp"

namespace stepcast {
std::span<const EmbeddedFile> embed_test_files();
std::span<const EmbeddedFile> embed_test_no_files();
}  // namespace stepcast

namespace {

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), path);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::string kFolder = stepcast::test::source_dir() + "/tests/unit/data/embed/";

}  // namespace

TEST_CASE("embedded files are the files, byte by byte and in the order given") {
  const auto files = stepcast::embed_test_files();
  REQUIRE(files.size() == 4);
  CHECK(files[0].name == "brackets.json");
  CHECK(files[0].text == read(kFolder + "brackets.json"));
  CHECK(files[1].name == "bytes.bin");
  CHECK(files[1].text == read(kFolder + "bytes.bin"));
  CHECK(files[1].text.find('\0') != std::string_view::npos);  // a NUL byte doesn't end the text
  CHECK(files[2].text.empty());
}

TEST_CASE("a file beyond the length that compilers guarantee for a literal is embedded whole") {
  const auto large = stepcast::embed_test_files()[3];
  CHECK(large.text.size() > 150'000);
  CHECK(large.text == read(STEPCAST_LARGE_FILE));
}

TEST_CASE("no files give an empty span") { CHECK(stepcast::embed_test_no_files().empty()); }
