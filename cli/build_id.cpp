// See build_id.hpp. Notes of an ELF program: elf(5).
#include "cli/build_id.hpp"

#include <fmt/format.h>
#include <link.h>

#include <cstddef>
#include <cstring>
#include <string_view>

namespace stepcast::cli {
namespace {

constexpr char kOwnerBytes[] = "GNU";
constexpr std::string_view kOwner(kOwnerBytes, sizeof kOwnerBytes);  // with the closing zero

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

/// The build id among the notes of one segment, in hexadecimal digits; empty if it is not there.
std::string build_id_in(const char* notes, std::size_t bytes) {
  for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof note);
    const std::size_t name = at + sizeof note, content = name + padded(note.n_namesz);
    at = content + padded(note.n_descsz);
    if (at > bytes) break;
    if (note.n_type != NT_GNU_BUILD_ID || std::string_view(notes + name, note.n_namesz) != kOwner) continue;
    std::string digits;
    for (const char c : std::string_view(notes + content, note.n_descsz)) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return digits;
  }
  return "";
}

/// The first object is the program itself; the libraries behind it are not asked.
int visit(dl_phdr_info* object, std::size_t, void* found) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& header = object->dlpi_phdr[i];
    auto& digits = *static_cast<std::string*>(found);
    // The loader gives addresses as numbers.
    if (header.p_type == PT_NOTE && digits.empty())
      digits = build_id_in(reinterpret_cast<const char*>(object->dlpi_addr + header.p_vaddr), header.p_memsz);  // NOLINT
  }
  return 1;
}

}  // namespace

std::string build_id() {
  std::string digits;
  dl_iterate_phdr(visit, &digits);
  return digits.empty() ? STEPCAST_VERSION : fmt::format("{} {}", STEPCAST_VERSION, digits);
}

}  // namespace stepcast::cli
