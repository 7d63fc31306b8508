// Files, zip archives (PKWARE APPNOTE 6.3: stored and deflated members) and folders. Test: tests/unit/profile_files_test.cpp.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"
#include "trace/profile/import.hpp"
#include "trace/profile/zip.hpp"

namespace stepcast::trace::profile {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 400;

bool names_a_trace(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.ends_with(".json") || name.ends_with(".json.gz");
}

Input file_input(const std::string& path, std::uint64_t bytes) {
  return {printable(path, kLongestName), [path, bytes] { return inflated_if_gzip(std::make_unique<FileSource>(path, 0, bytes)); }};
}

std::vector<Input> archive_inputs(const std::string& path) {
  std::vector<Input> inputs;
  for (const ZipMember& member : zip_members(path)) {
    if (!names_a_trace(member.name)) continue;
    inputs.push_back({printable(path + ":" + member.name, kLongestName), [path, member] { return inflated_if_gzip(open_member(path, member)); }});
  }
  if (inputs.empty()) throw InputError(printable(path, kLongestName), "", "holds no trace", "members that end in .json or .json.gz are read");
  return inputs;
}

std::vector<Input> folder_inputs(const std::string& path) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && (names_a_trace(name) || name.ends_with(".zip"))) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) throw InputError(printable(path, kLongestName), "", "holds no trace", "files that end in .json, .json.gz or .zip are read");
  std::vector<Input> inputs;
  for (const std::string& file : files) {
    for (Input& input : inputs_at(file)) inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace

std::vector<Input> inputs_at(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw InputError(printable(path, kLongestName), "", "no such file or folder");
  if (fs::is_directory(status)) return folder_inputs(path);
  std::ifstream file(path, std::ios::binary);
  if (!file || !fs::is_regular_file(status)) throw InputError(printable(path, kLongestName), "", "can't be read: it is no regular file, or not readable");
  char magic[4] = {};
  file.read(magic, sizeof magic);
  if (std::string_view(magic, 4) == "PK\x03\x04") return archive_inputs(path);
  return {file_input(path, fs::file_size(path, error))};
}

}  // namespace stepcast::trace::profile
