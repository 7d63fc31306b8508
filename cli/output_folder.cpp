// Staging and renaming of the files of --out. docs/commands.md; test: tests/golden/cli_test.cpp.
#include "cli/output_folder.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {

namespace fs = std::filesystem;

bool is_own_report(const fs::path& report_json) {
  std::ifstream file(report_json, std::ios::binary);
  std::array<char, 256> head{};
  file.read(head.data(), head.size());
  const std::string_view text(head.data(), static_cast<std::size_t>(file.gcount()));
  return text.find("\"schema\": \"stepcast.") != std::string_view::npos;
}

OutputFolder::OutputFolder(fs::path folder, const std::vector<std::string>& names, bool force) : folder_(std::move(folder)) {
  const std::string shown = "--out " + printable(folder_.string());
  std::error_code error;
  if (fs::exists(folder_, error) && !fs::is_directory(folder_, error)) throw InputError(shown, "", "is not a folder");
  created_ = fs::create_directories(folder_, error);
  if (error) throw InputError(shown, "", "can't be made: " + error.message());
  if (access(folder_.c_str(), W_OK) != 0) throw InputError(shown, "", "can't be written: " + std::generic_category().message(errno));
  if (force || is_own_report(folder_ / "report.json")) return;
  for (const std::string& name : names) {
    if (!fs::exists(fs::symlink_status(folder_ / name, error))) continue;
    throw InputError(shown, "", name + " is there and was not written by stepcast", "choose another folder, or replace it with --force");
  }
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  for (const auto& [temporary, name] : staged_) fs::remove(temporary, ignored);
  if (created_) fs::remove(folder_, ignored);  // fails, as it should, where it holds anything
}

fs::path OutputFolder::staged_path(const std::string& name) {
  fs::path temporary = folder_ / ("." + name + "." + std::to_string(getpid()));
  staged_.emplace_back(temporary, folder_ / name);
  return temporary;
}

void OutputFolder::stage(const std::string& name, std::string_view text) {
  PieceFile file(staged_path(name));
  file.write(text);
  file.close();
}

void OutputFolder::publish() {
  for (const auto& [temporary, name] : staged_) fs::rename(temporary, name);
  staged_.clear();
}

PieceFile::PieceFile(fs::path path) : path_(std::move(path)), file_(path_, std::ios::binary) {
  if (!file_) fail();
}

void PieceFile::write(std::string_view text) {
  if (!file_.write(text.data(), static_cast<std::streamsize>(text.size()))) fail();
}

void PieceFile::close() {
  file_.close();
  if (!file_) fail();
}

void PieceFile::fail() const { throw std::system_error(errno, std::generic_category(), "can't write " + path_.string()); }

namespace {

fs::path folder_of(const std::string& shown, const fs::path& path) {
  fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw InputError(shown, "", "can't be written: its folder is not there");
  if (path.filename().empty() || (fs::exists(path, error) && !fs::is_regular_file(path, error))) throw InputError(shown, "", "is not a file");
  return folder;
}

bool begins_with(const fs::path& path, std::string_view own) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  return !own.empty() && std::getline(file, line) && line == own.substr(0, own.find('\n'));
}

}  // namespace

OutputFile::OutputFile(const std::string& option, const fs::path& path, bool force, std::string_view own)
    : name_(path.filename().string()), folder_(folder_of(option + " " + printable(path.string()), path), {}, true) {
  std::error_code error;
  if (force || !fs::exists(fs::symlink_status(path, error)) || begins_with(path, own)) return;
  throw InputError(option + " " + printable(path.string()), "", "is there and was not written by stepcast", "choose another name, or replace it with --force");
}

void OutputFile::write(std::string_view text) {
  folder_.stage(name_, text);
  folder_.publish();
}

}  // namespace stepcast::cli
