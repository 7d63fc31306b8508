// Where the bytes of a trace come from: a part of a file, memory, or the decompression of another source. Read forward, once.
// Document: docs/diagnose.md, "What is read". Test: tests/unit/profile_files_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

namespace stepcast::trace::profile {

class ByteSource {
 public:
  ByteSource() = default;
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  /// Up to `capacity` bytes to `to`; 0 only at the end.
  virtual std::size_t read(char* to, std::size_t capacity) = 0;
  /// The compressed data ended or broke before its end; known once read() returned 0.
  [[nodiscard]] virtual bool cut_short() const { return false; }
};

/// `length` bytes of a file from `offset` on.
class FileSource : public ByteSource {
 public:
  FileSource(const std::string& path, std::uint64_t offset, std::uint64_t length);
  std::size_t read(char* to, std::size_t capacity) override;

 private:
  std::ifstream file_;
  std::uint64_t left_;
};

/// Bytes that outlive it.
class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : left_(bytes) {}
  std::size_t read(char* to, std::size_t capacity) override;

 private:
  std::string_view left_;
};

enum class Compression : std::uint8_t { gzip, raw_deflate };
/// The decompressed bytes of `packed`: gzip may have several members, raw deflate is what a zip archive holds.
std::unique_ptr<ByteSource> inflated(std::unique_ptr<ByteSource> packed, Compression compression);
/// `source` itself, or what it decompresses to if its first bytes say gzip.
std::unique_ptr<ByteSource> inflated_if_gzip(std::unique_ptr<ByteSource> source);

}  // namespace stepcast::trace::profile
