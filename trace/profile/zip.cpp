// Layout: PKWARE APPNOTE 6.3, sections 4.3.7 (local header), 4.3.12 (directory) and 4.3.16 (its end). Test: tests/unit/profile_files_test.cpp.
#include "trace/profile/zip.hpp"

#include <algorithm>
#include <filesystem>

#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::trace::profile {

namespace {

constexpr std::size_t kEndBytes = 22, kLongestComment = 65535, kEntryBytes = 46, kLocalBytes = 30;
constexpr std::size_t kLargestDirectory = std::size_t{1} << 26;
constexpr std::uint32_t kInZip64 = 0xffffffff;

std::uint32_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

std::string read_at(const std::string& path, std::uint64_t offset, std::size_t bytes) {
  FileSource file(path, offset, bytes);
  std::string text(bytes, '\0');
  std::size_t got = 0;
  while (const std::size_t more = file.read(text.data() + got, bytes - got)) got += more;
  text.resize(got);
  return text;
}

InputError damaged(const std::string& label, const std::string& what) {
  return InputError(printable(label, 400), "", "is a damaged zip archive: " + what, "unpack it and give the folder instead");
}

}  // namespace

std::vector<ZipMember> parse_zip_directory(std::string_view bytes, std::size_t entries, const std::string& label) {
  std::vector<ZipMember> members;
  std::size_t at = 0;
  for (std::size_t i = 0; i < entries; ++i) {
    if (at + kEntryBytes > bytes.size() || bytes.substr(at, 4) != "PK\x01\x02") throw damaged(label, "its directory is cut");
    const std::size_t name_bytes = number(bytes, at + 28, 2), rest = number(bytes, at + 30, 2) + number(bytes, at + 32, 2);
    if (at + kEntryBytes + name_bytes > bytes.size()) throw damaged(label, "its directory is cut");
    ZipMember member{std::string(bytes.substr(at + kEntryBytes, name_bytes)), number(bytes, at + 20, 4), number(bytes, at + 42, 4),
                     static_cast<std::uint16_t>(number(bytes, at + 10, 2))};
    const bool encrypted = (number(bytes, at + 8, 2) & 1) != 0;
    const bool readable = member.method == 0 || member.method == 8;
    if (encrypted || !readable || member.packed_bytes == kInZip64 || member.header_offset == kInZip64)
      throw InputError(printable(label, 400), printable(member.name),
                       "can't be read from the archive (encrypted, above 4 GiB, or packed by another method than deflate)",
                       "unpack it and give the folder instead");
    members.push_back(std::move(member));
    at += kEntryBytes + name_bytes + rest;
  }
  std::sort(members.begin(), members.end(), [](const ZipMember& a, const ZipMember& b) { return a.name < b.name; });
  return members;
}

std::vector<ZipMember> zip_members(const std::string& path) {
  const std::uint64_t bytes = std::filesystem::file_size(path);
  const std::size_t tail_bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kEndBytes + kLongestComment));
  const std::string tail = read_at(path, bytes - tail_bytes, tail_bytes);
  const std::size_t end = tail.rfind("PK\x05\x06");
  if (end == std::string::npos || end + kEndBytes > tail.size()) throw damaged(path, "it has no directory");
  const std::uint32_t size = number(tail, end + 12, 4);
  if (size > kLargestDirectory) throw damaged(path, "its directory is too large");
  return parse_zip_directory(read_at(path, number(tail, end + 16, 4), size), number(tail, end + 10, 2), path);
}

std::unique_ptr<ByteSource> open_member(const std::string& path, const ZipMember& member) {
  const std::string local = read_at(path, member.header_offset, kLocalBytes);
  if (local.size() < kLocalBytes || !local.starts_with("PK\x03\x04")) throw damaged(path, "a member is not where its directory says");
  const std::uint64_t begin = member.header_offset + kLocalBytes + number(local, 26, 2) + number(local, 28, 2);
  auto packed = std::make_unique<FileSource>(path, begin, member.packed_bytes);
  if (member.method == 0) return packed;
  return inflated(std::move(packed), Compression::raw_deflate);
}

}  // namespace stepcast::trace::profile
