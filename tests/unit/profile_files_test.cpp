// Plain files, gzip whole and cut, zip archives, folders. docs/diagnose.md, "What is read".
#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "hw_models/input_error.hpp"
#include "support/profile_json.hpp"

using stepcast::InputError, stepcast::test::ProfileJson;
using namespace stepcast::trace::profile;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "stepcast-profile-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

/// window_bits: 31 gzip, -15 raw deflate.
std::string packed(const std::string& text, int window_bits) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(text.size() + 1000, '\0');
  std::string in = text;
  z.next_in = reinterpret_cast<Bytef*>(in.data());
  z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string little(std::size_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(i < sizeof value ? value >> (8 * i) & 0xff : 0);
  return out;
}

/// A zip archive of members (name, stored bytes, method).
struct Member {
  std::string name, bytes;
  std::size_t method;
};
std::string zip(const std::vector<Member>& members) {
  std::string out, directory;
  for (const Member& m : members) {
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + little(0, 2) + little(m.method, 2) + little(0, 8) + little(m.bytes.size(), 4) + little(0, 4) +
                 little(m.name.size(), 2) + little(0, 12) + little(out.size(), 4) + m.name;
    out += "PK\x03\x04" + little(20, 2) + little(0, 2) + little(m.method, 2) + little(0, 16) + little(m.name.size(), 2) + little(0, 2) + m.name + m.bytes;
  }
  const std::size_t at = out.size();
  return out + directory + "PK\x05\x06" + little(0, 4) + little(members.size(), 2) + little(members.size(), 2) + little(directory.size(), 4) + little(at, 4) +
         little(0, 2);
}

Profile read(const Input& input) { return import_profile(*input.open(), input.label); }

std::string trace_of(const char* kernel) { return ProfileJson().kernel(kernel, 1, 1, 7, 1).text(); }

}  // namespace

TEST_CASE("gzip is known by its bytes; several members follow each other; what is cut is read up to there") {
  const Folder folder;
  const std::string text = trace_of("k"), gz = packed(text, 31);
  CHECK(read(inputs_at(folder.file("a.json", gz)).at(0)).device_ops.size() == 1);
  const std::string two = packed(text.substr(0, 20), 31) + packed(text.substr(20), 31);
  const Profile joined = read(inputs_at(folder.file("b.json.gz", two)).at(0));
  CHECK(joined.device_ops.size() == 1);
  CHECK(joined.oddities.count("compressed_data_cut_short") == 0);
  const Profile cut = read(inputs_at(folder.file("c.json.gz", gz.substr(0, gz.size() - 12))).at(0));
  CHECK(cut.oddities.count("compressed_data_cut_short") == 1);
}

TEST_CASE("a zip archive: members stored, deflated and gzipped, others left out, in the order of their names") {
  const Folder folder;
  const std::string a = trace_of("a"), b = trace_of("b"), c = trace_of("c");
  const auto inputs =
      inputs_at(folder.file("ranks.zip", zip({{"r2.json.gz", packed(c, 31), 0}, {"r0.json", a, 0}, {"readme.txt", "x", 0}, {"r1.json", packed(b, -15), 8}})));
  REQUIRE(inputs.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const Profile p = read(inputs[i]);
    CHECK(p.names[p.device_ops.at(0).name] == std::string(1, static_cast<char>('a' + i)));
  }
}

TEST_CASE("a damaged archive is refused, wherever it is cut") {
  const Folder folder;
  const std::string whole = zip({{"r0.json", trace_of("a"), 0}});
  for (std::size_t size = 4; size < whole.size(); size += 7) {
    const std::string path = folder.file("cut.zip", whole.substr(0, size));
    CHECK_THROWS_AS(read(inputs_at(path).at(0)), InputError);
  }
  CHECK_THROWS_AS(inputs_at(folder.file("method.zip", zip({{"r0.json", "x", 12}}))), InputError);
  CHECK_THROWS_AS(inputs_at(folder.file("none.zip", zip({{"readme.txt", "x", 0}}))), InputError);
}

TEST_CASE("a folder: its traces by name; without any it is refused") {
  const Folder folder;
  CHECK_THROWS_AS(inputs_at(folder.path()), InputError);
  CHECK_THROWS_AS(inputs_at(folder.path() + "/absent"), InputError);
  folder.file("b.json", trace_of("b"));
  folder.file("a.pt.trace.json.gz", packed(trace_of("a"), 31));
  folder.file("notes.txt", "x");
  const auto inputs = inputs_at(folder.path());
  REQUIRE(inputs.size() == 2);
  CHECK(read(inputs[0]).names[0] == "a");
}
