// See arena.hpp.
#include "real_backend/host/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "real_backend/device.hpp"

namespace stepcast::real::host {

namespace {

constexpr std::uint64_t kPage = 4096;  // or a whole part of one

/// Kernels before Linux 5.14 take pages only when they are touched, and a virtual machine may map them only then. Only bytes of the segment are: another one, of which a kernel is
/// writing, may lie on its first or last page.
void touch(std::byte* memory, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes + kPage - 1; i += kPage) {
    volatile std::byte* byte = memory + std::min(i, bytes - 1);
    *byte = *byte;
  }
}

}  // namespace

Arena::Arena(std::int64_t bytes) : bytes_(bytes) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "the system reserves no address space for the device memory of a rank");
  base_ = static_cast<std::byte*>(memory);
}

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, static_cast<std::size_t>(bytes_));
}

void Arena::populate(std::uint64_t address, std::int64_t bytes) const {
  std::byte* memory = at(address, bytes);
#ifdef MADV_POPULATE_WRITE
  const std::uint64_t before = address % kPage;
  if (madvise(memory - before, before + static_cast<std::uint64_t>(bytes), MADV_POPULATE_WRITE) != 0 && (errno == ENOMEM || errno == EFAULT))
    throw OutOfMemory("the system has no memory for a segment of " + std::to_string(bytes) + " bytes");
#endif
  touch(memory, static_cast<std::uint64_t>(bytes));
}

void Arena::release(std::uint64_t address, std::int64_t bytes) const {
  const std::uint64_t begin = (address + kPage - 1) / kPage * kPage, end = (address + static_cast<std::uint64_t>(bytes)) / kPage * kPage;
  if (begin < end) madvise(at(begin, static_cast<std::int64_t>(end - begin)), end - begin, MADV_DONTNEED);
}

std::byte* Arena::at(std::uint64_t address, std::int64_t bytes) const {
  if (address + static_cast<std::uint64_t>(bytes) > static_cast<std::uint64_t>(bytes_))
    throw std::runtime_error("the device memory's address space is used up: the allocator has given back and taken too many segments");
  return base_ + address;
}

}  // namespace stepcast::real::host
