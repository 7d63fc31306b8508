// The folder of --out: files are written under temporary names and renamed together at the end, so that no half result is left. Test: tests/golden/cli_test.cpp.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepcast::cli {

class OutputFolder {
 public:
  /// Makes the folder if it isn't there. Files of an earlier report of ours are replaced; anything else that has one of `names` is refused unless `force`.
  /// Throws InputError if the folder can't be used.
  OutputFolder(std::filesystem::path folder, const std::vector<std::string>& names, bool force);
  /// Removes what was staged and not published, and the folder if it was made here and is empty.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// Writes `text` under a temporary name. Throws std::system_error.
  void stage(const std::string& name, std::string_view text);
  /// A temporary path for `name`, for a writer of its own.
  [[nodiscard]] std::filesystem::path staged_path(const std::string& name);
  /// Gives all staged files their names.
  void publish();

 private:
  std::filesystem::path folder_;
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> staged_;  // temporary, final
  bool created_ = false;
};

/// A staged file that is written piece by piece, so that it need not be held whole.
class PieceFile {
 public:
  /// Throws std::system_error.
  explicit PieceFile(std::filesystem::path path);
  void write(std::string_view text);
  /// All that was written is in the file. Throws std::system_error if not.
  void close();

 private:
  [[noreturn]] void fail() const;
  std::filesystem::path path_;
  std::ofstream file_;
};

/// One file that the user names: written under a temporary name and renamed, so that it is whole or not there.
class OutputFile {
 public:
  /// `option`: how the command line names it. What is there already is refused unless `force`, or unless it begins with the same line as `own`, what stepcast
  /// would write. Throws InputError.
  OutputFile(const std::string& option, const std::filesystem::path& path, bool force, std::string_view own = {});
  /// Throws std::system_error.
  void write(std::string_view text);
  /// The same piece by piece: what is written to this path is there under its name once it is published.
  [[nodiscard]] std::filesystem::path staged_path() { return folder_.staged_path(name_); }
  void publish() { folder_.publish(); }

 private:
  std::string name_;
  OutputFolder folder_;
};

/// Whether the file begins as a report that stepcast wrote.
bool is_own_report(const std::filesystem::path& report_json);

}  // namespace stepcast::cli
