// Test: tests/unit/output_file_test.cpp.
#include "trace/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace stepcast::trace {

namespace {

// Level 4 of 9: traces compress to within a tenth of the best size at several times the speed.
constexpr const char* kMode = "wb4";

/// Creates a new file beside `path` with the usual permissions (mkstemp's are for the owner alone); changes `name` to its name. -1: errno says why not.
int create_beside(const std::string& path, std::string& name) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    name = fmt::format("{}.{}-{}.part", path, getpid(), attempt);
    const int descriptor = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

}  // namespace

GzipFile::GzipFile(const std::string& path) : path_(path), stream_(this) {
  stream_.exceptions(std::ios::badbit);
  const int descriptor = create_beside(path_, temporary_);
  if (descriptor < 0) fail(errno);
  file_.reset(gzdopen(descriptor, kMode));
  if (!file_) {
    close(descriptor);
    unlink(temporary_.c_str());
    fail(ENOMEM);
  }
  gzbuffer(file_.get(), 1U << 17);
  setp(pending_.data(), pending_.data() + pending_.size());
}

GzipFile::~GzipFile() {
  file_.reset();
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void GzipFile::commit() {
  deflate_pending();
  if (gzclose(file_.release()) != Z_OK) fail(errno != 0 ? errno : EIO);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

GzipFile::int_type GzipFile::overflow(int_type c) {
  deflate_pending();
  if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
  return traits_type::not_eof(c);
}

int GzipFile::sync() {
  deflate_pending();
  return 0;
}

void GzipFile::deflate_pending() {
  const auto size = static_cast<unsigned>(pptr() - pbase());
  setp(pending_.data(), pending_.data() + pending_.size());
  if (size == 0) return;
  errno = 0;
  if (gzwrite(file_.get(), pending_.data(), size) != static_cast<int>(size)) fail(errno != 0 ? errno : EIO);
}

void GzipFile::fail(int error) const { throw std::system_error(error, std::generic_category(), path_); }

}  // namespace stepcast::trace
