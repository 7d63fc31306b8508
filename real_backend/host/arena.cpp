// See arena.hpp.
#include "real_backend/host/arena.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

namespace stepcast::real::host {

Arena::Arena(std::int64_t bytes) : bytes_(bytes) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "the system reserves no address space for the device memory of a rank");
  base_ = static_cast<std::byte*>(memory);
}

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, static_cast<std::size_t>(bytes_));
}

std::byte* Arena::at(std::uint64_t address, std::int64_t bytes) const {
  if (address + static_cast<std::uint64_t>(bytes) > static_cast<std::uint64_t>(bytes_))
    throw std::runtime_error("the device memory's address space is used up: the allocator has given back and taken too many segments");
  return base_ + address;
}

}  // namespace stepcast::real::host
