// A file that appears whole or not at all: written under a temporary name in the same folder, renamed when it is complete. Private to trace/.
// Test: tests/unit/output_file_test.cpp.
#pragma once

#include <zlib.h>

#include <array>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>

namespace stepcast::trace {

/// Compresses what is written to it. Throws std::system_error when the file system refuses.
class GzipFile : private std::streambuf {
 public:
  explicit GzipFile(const std::string& path);
  ~GzipFile() override;
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  std::ostream& stream() { return stream_; }
  /// Completes the file and gives it its name. Without it the destructor removes what was written.
  void commit();

 private:
  int_type overflow(int_type c) override;
  int sync() override;
  void deflate_pending();
  [[noreturn]] void fail(int error) const;

  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  std::string path_, temporary_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::array<char, 1 << 15> pending_{};
  std::ostream stream_;
};

}  // namespace stepcast::trace
