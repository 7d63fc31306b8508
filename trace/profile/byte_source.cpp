// Files and zlib behind one interface. Test: tests/unit/profile_files_test.cpp.
#include "trace/profile/byte_source.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

namespace stepcast::trace::profile {

namespace {

constexpr std::size_t kPackedChunk = std::size_t{1} << 18;
constexpr int kGzipWindow = 15 + 16, kRawWindow = -15;  // zlib's inflateInit2: 16 asks for gzip, a negative number for no header

class InflatedSource : public ByteSource {
 public:
  InflatedSource(std::unique_ptr<ByteSource> packed, Compression compression)
      : packed_(std::move(packed)), in_(kPackedChunk), gzip_(compression == Compression::gzip) {
    if (inflateInit2(&zlib_, gzip_ ? kGzipWindow : kRawWindow) != Z_OK) throw std::bad_alloc();
  }
  ~InflatedSource() override { inflateEnd(&zlib_); }
  InflatedSource(const InflatedSource&) = delete;
  InflatedSource& operator=(const InflatedSource&) = delete;

  std::size_t read(char* to, std::size_t capacity) override {
    const auto room = static_cast<uInt>(std::min<std::size_t>(capacity, std::size_t{1} << 30));
    zlib_.next_out = reinterpret_cast<Bytef*>(to);
    zlib_.avail_out = room;
    while (!done_ && zlib_.avail_out == room) step();
    return room - zlib_.avail_out;
  }
  [[nodiscard]] bool cut_short() const override { return cut_short_; }

 private:
  /// Feeds zlib and lets it write; ends the stream at its end, at a fault, or where the input ends.
  void step() {
    const bool fed = zlib_.avail_in > 0 || feed();
    if (!fed) return finish(!between_members_);
    if (between_members_ && *zlib_.next_in != 0x1f) return finish(false);  // padding after the last member
    between_members_ = false;
    const int code = inflate(&zlib_, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code == Z_STREAM_END && gzip_) {
      between_members_ = true;
      inflateReset(&zlib_);
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      finish(code != Z_STREAM_END);
    }
  }
  bool feed() {
    const std::size_t got = packed_->read(in_.data(), in_.size());
    zlib_.next_in = reinterpret_cast<Bytef*>(in_.data());
    zlib_.avail_in = static_cast<uInt>(got);
    return got > 0;
  }
  void finish(bool cut_short) {
    done_ = true;
    cut_short_ = cut_short;
  }

  std::unique_ptr<ByteSource> packed_;
  std::vector<char> in_;
  z_stream zlib_{};
  bool gzip_, done_ = false, cut_short_ = false, between_members_ = false;
};

/// A few bytes that were looked at, then the rest.
class Rejoined : public ByteSource {
 public:
  Rejoined(std::string head, std::unique_ptr<ByteSource> rest) : head_(std::move(head)), rest_(std::move(rest)) {}
  std::size_t read(char* to, std::size_t capacity) override {
    if (at_ == head_.size()) return rest_->read(to, capacity);
    const std::size_t count = std::min(capacity, head_.size() - at_);
    std::memcpy(to, head_.data() + at_, count);
    at_ += count;
    return count;
  }
  [[nodiscard]] bool cut_short() const override { return rest_->cut_short(); }

 private:
  std::string head_;
  std::size_t at_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

}  // namespace

FileSource::FileSource(const std::string& path, std::uint64_t offset, std::uint64_t length) : file_(path, std::ios::binary), left_(length) {
  file_.seekg(static_cast<std::streamoff>(offset));
}

std::size_t FileSource::read(char* to, std::size_t capacity) {
  const auto wanted = static_cast<std::streamsize>(std::min<std::uint64_t>(capacity, left_));
  if (wanted == 0 || !file_) return 0;
  file_.read(to, wanted);
  const auto got = static_cast<std::size_t>(file_.gcount());
  left_ -= got;
  return got;
}

std::size_t MemorySource::read(char* to, std::size_t capacity) {
  const std::size_t count = std::min(capacity, left_.size());
  if (count > 0) std::memcpy(to, left_.data(), count);
  left_.remove_prefix(count);
  return count;
}

std::unique_ptr<ByteSource> inflated(std::unique_ptr<ByteSource> packed, Compression compression) {
  return std::make_unique<InflatedSource>(std::move(packed), compression);
}

std::unique_ptr<ByteSource> inflated_if_gzip(std::unique_ptr<ByteSource> source) {
  std::string head(2, '\0');
  std::size_t got = source->read(head.data(), 2);
  if (got == 1) got += source->read(head.data() + 1, 1);
  head.resize(got);
  const bool gzip = head == "\x1f\x8b";
  auto whole = std::make_unique<Rejoined>(std::move(head), std::move(source));
  return gzip ? inflated(std::move(whole), Compression::gzip) : std::move(whole);
}

}  // namespace stepcast::trace::profile
