// The directory of a zip archive, and one member of it. Private to trace/profile. Test: tests/unit/profile_files_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/profile/byte_source.hpp"

namespace stepcast::trace::profile {

struct ZipMember {
  std::string name;
  std::uint64_t packed_bytes = 0, header_offset = 0;
  std::uint16_t method = 0;  // 0 stored, 8 deflated
};

/// The members that the directory at the archive's end lists, by name. Throws InputError for a damaged archive or a member that can't be read.
std::vector<ZipMember> zip_members(const std::string& path);
/// The entries of a directory's bytes; `label` names the archive in errors.
std::vector<ZipMember> parse_zip_directory(std::string_view bytes, std::size_t entries, const std::string& label);
std::unique_ptr<ByteSource> open_member(const std::string& path, const ZipMember& member);

}  // namespace stepcast::trace::profile
