// See memory.hpp.
#include "tests/fakes/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <system_error>

namespace stepcast::fakes {

std::byte* Memory::reserve(std::size_t bytes, int protection, int file) {
  const int flags = MAP_NORESERVE | (file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
  void* memory = mmap(nullptr, bytes, protection, flags, file, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "memory of a fake GPU");
  return static_cast<std::byte*>(memory);
}

Memory::Memory(std::size_t bytes) : bytes_(bytes), file_(memfd_create("gpu", 0)) {
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0) throw std::system_error(errno, std::generic_category(), "memory of a fake GPU");
  shown_ = reserve(bytes, PROT_NONE, -1);
  real_ = reserve(bytes, PROT_READ | PROT_WRITE, file_);
  shadows_ = reinterpret_cast<Shadow*>(reserve(bytes / kGranule * sizeof(Shadow), PROT_READ | PROT_WRITE, -1));
}

Memory::~Memory() {
  munmap(shown_, bytes_);
  munmap(real_, bytes_);
  munmap(shadows_, bytes_ / kGranule * sizeof(Shadow));
  close(file_);
}

void* Memory::take(std::size_t bytes) {
  const std::size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  if (bytes > bytes_ || next_ + rounded > bytes_) return nullptr;
  taken_[next_] = bytes;
  taken_bytes_ += bytes;
  next_ += rounded + kPage;  // a page that nobody has
  return shown_ + std::prev(taken_.end())->first;
}

bool Memory::give(void* place) {
  if (!contains(place)) return false;
  const auto found = taken_.find(static_cast<std::size_t>(static_cast<std::byte*>(place) - shown_));
  if (found == taken_.end()) return false;
  taken_bytes_ -= found->second;
  taken_.erase(found);
  return true;
}

bool Memory::contains(const void* place) const { return place >= shown_ && place < shown_ + bytes_; }

std::byte* Memory::touch(const void* place, std::size_t bytes, bool write, const Toucher& who) {
  if (!contains(place)) throw Fault("memory that is not this GPU's is used on it");
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(place) - shown_);
  const auto above = taken_.upper_bound(offset);
  if (above == taken_.begin()) throw Fault("device memory is used that is not taken, or no more");
  const auto& [begin, size] = *std::prev(above);
  if (offset + bytes > begin + size) throw Fault("device memory is used beyond its end, or after it was given back");
  for (std::size_t i = offset / kGranule; i * kGranule < offset + bytes; ++i) check(shadows_[i], write, who, place);
  return real_ + offset;
}

void Memory::check(Shadow& shadow, bool write, const Toucher& who, const void* place) const {
  const auto at = [&] { return std::to_string(static_cast<const std::byte*>(place) - shown_); };
  if (!who.clock->knows(shadow.written))
    throw Fault("stream " + std::to_string(who.slot) + (write ? " writes" : " reads") + " at " + at() + " what stream " +
                std::to_string(shadow.written.slot()) + " writes, and has not waited for it");
  if (!write) {
    if (shadow.written.none()) throw Fault("stream " + std::to_string(who.slot) + " reads at " + at() + " what was never written");
    return note_read(shadow, who);
  }
  for (Epoch& read : shadow.read) {
    if (!who.clock->knows(read))
      throw Fault("stream " + std::to_string(who.slot) + " writes at " + at() + " what stream " + std::to_string(read.slot()) +
                  " reads, and has not waited for it");
    read = {};
  }
  shadow.written = {who.slot, who.clock->times[who.slot]};
}

/// Readers that are known to be done make room for later ones; of more than kReaders the last place keeps the latest.
void Memory::note_read(Shadow& shadow, const Toucher& who) {
  Epoch* place = &shadow.read[kReaders - 1];
  for (Epoch& read : shadow.read) {
    if (who.clock->knows(read)) {
      place = &read;
      break;
    }
  }
  *place = {who.slot, who.clock->times[who.slot]};
}

}  // namespace stepcast::fakes
